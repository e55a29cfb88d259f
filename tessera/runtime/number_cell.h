// Numbers of a launch as elements: in the cells that steps read them from.
#pragma once

#include <cstdint>

#include "tessera/ir/dtype.h"

namespace tessera::runtime {

/// A parameter, given as bits of a double for floats and of an i64 for the others, as an element of its
/// dtype in the first bytes of a cell.
[[nodiscard]] std::uint64_t number_cell(std::uint64_t bits, ir::Dtype dtype);

}  // namespace tessera::runtime
