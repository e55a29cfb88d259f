// Numbers of a launch, and as elements: in the cells that steps read them from.
#pragma once

#include <bit>
#include <cstdint>
#include <span>

#include "tessera/ir/dtype.h"

namespace tessera::runtime {

/// The parameters of a launch by slot, as floats and as integers; one of the two is what was given, every bit
/// of it.
struct Numbers {
  std::span<const double> reals;
  std::span<const std::int64_t> integers;

  [[nodiscard]] std::size_t size() const { return reals.size(); }
  /// Of a double if `dtype` is a float, else of an i64.
  [[nodiscard]] std::uint64_t bits(std::size_t slot, ir::Dtype dtype) const {
    return ir::is_float(dtype) ? std::bit_cast<std::uint64_t>(reals[slot])
                               : std::bit_cast<std::uint64_t>(integers[slot]);
  }
};

/// A parameter, given as bits of a double for floats and of an i64 for the others, as an element of its
/// dtype in the first bytes of a cell.
[[nodiscard]] std::uint64_t number_cell(std::uint64_t bits, ir::Dtype dtype);

}  // namespace tessera::runtime
