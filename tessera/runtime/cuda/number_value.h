// The numbers of a launch, as kernels want them.
#pragma once

#include <cstdint>

#include "tessera/ir/dtype.h"

namespace tessera::runtime::cuda {

/// A parameter of dtype `from`, given as bits of a double for floats and of an i64 for the others, as the
/// argument of a kernel: an f64, f32 or i64 in the low bytes. It is rounded to what `from` can hold.
[[nodiscard]] std::uint64_t argument_value(std::uint64_t bits, ir::Dtype from, ir::Dtype as);

}  // namespace tessera::runtime::cuda
