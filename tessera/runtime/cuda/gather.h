// A read by indices, as the forms of its kernel see it.
#pragma once

#include <optional>
#include <string_view>

#include "tessera/runtime/cuda/device_limits.h"
#include "tessera/runtime/cuda/index_text.h"
#include "tessera/runtime/cuda/program_writer.h"

namespace tessera::runtime::cuda {

/// For each element of the result where it is without the indices, and which row of them it has.
struct Gather {
  Operand x, indices, y;
  op::Extents from = {}, rows = {};  ///< strides of x and of the indices, by axis of the result
  op::Extents numbers = {};          ///< the number of a row of indices, by axis of the result
  NamedAxes named = {};
  std::size_t batch_axes =
      0;  ///< the first axes of the result, which are axes of x: all before the named ones
};

/// Whether every place of x, too, can be counted in 32 bits. `walk` is over the result, x is its first array.
[[nodiscard]] IndexWidth width_of(const Walk& walk, const NamedAxes& named);

/// The launch whose blocks copy rows of x to shared memory and take the elements from there, where that can
/// be done and pays; else nothing, and elements are read where they are. REQUIRES a result with elements.
[[nodiscard]] std::optional<Launch> gather_from_held_rows(std::string_view op, const Gather& gather,
                                                          const Memory& status, const DeviceLimits& limits);

}  // namespace tessera::runtime::cuda
