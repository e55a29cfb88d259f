// The numbers of a launch, as kernels want them.
#pragma once

#include <bit>
#include <cstdint>

#include "tessera/ir/dtype.h"

namespace tessera::runtime::cuda {

/// argument_value() of what does not come by the thousand.
[[nodiscard]] std::uint64_t rare_argument_value(std::uint64_t bits, ir::Dtype from, ir::Dtype as);

/// A parameter of dtype `from`, given as bits of a double for floats and of an i64 for the others, as the
/// argument of a kernel: an f64, f32 or i64 in the low bytes. It is rounded to what `from` can hold.
[[nodiscard]] inline std::uint64_t argument_value(std::uint64_t bits, ir::Dtype from, ir::Dtype as) {
  if (from == ir::Dtype::f32 && as == ir::Dtype::f32) [[likely]]
    return std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(bits)));
  return rare_argument_value(bits, from, as);
}

}  // namespace tessera::runtime::cuda
