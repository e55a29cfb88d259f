// A number of a launch as 64 bits, exact for every dtype: the bits of a double for floats, of an i64 for the
// others; those of a u64 are its own.
#pragma once

#include <cstdint>

#include "tessera/ir/dtype.h"

namespace tessera::ir {

/// Integers are rounded towards zero, and to what 64 bits of their sign hold; NaN is 0 there.
[[nodiscard]] std::uint64_t number_bits(double value, Dtype dtype);

/// The nearest double.
[[nodiscard]] double number_of(std::uint64_t bits, Dtype dtype);

}  // namespace tessera::ir
