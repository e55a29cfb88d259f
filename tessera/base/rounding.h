// Counts of parts that hold everything. For sizes that are known to be far from overflow.
#pragma once

#include <cstdint>

namespace tessera {

/// a / b, rounded up. REQUIRES a >= 0, b > 0.
[[nodiscard]] constexpr std::int64_t divided_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// The least multiple of `step` that is not below a. REQUIRES a >= 0, step > 0.
[[nodiscard]] constexpr std::int64_t rounded_up(std::int64_t a, std::int64_t step) {
  return divided_up(a, step) * step;
}

}  // namespace tessera
