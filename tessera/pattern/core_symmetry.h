// The symmetries of a pattern's core (pattern_shape.h): which of its vertices the mappings of the pattern
// onto itself exchange.
#pragma once

#include <cstdint>
#include <vector>

#include "tessera/pattern/pattern_shape.h"

namespace tessera::pattern {

/// `first` can be mapped onto `other` by a mapping that keeps all core vertices before `first`.
struct CoreExchange {
  std::uint32_t first = 0;
  std::uint32_t other = 0;
};

/// All of them, for the order of the nodes that `rank` gives, and externals after them. Beyond a few hundred
/// core vertices, or where the search takes too long, some or all may be missing.
[[nodiscard]] std::vector<CoreExchange> find_core_exchanges(const PatternShape& shape, TreeClasses& trees,
                                                            std::span<const std::uint32_t> rank);

}  // namespace tessera::pattern
