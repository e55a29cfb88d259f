// The symmetries of a pattern, as rules that let one of several equivalent matches through.
//
// A pattern may be mapped onto itself: the operands of an addition swapped, eight equal branches permuted.
// Two matches that differ only by such a mapping bind the same values to parts that nothing can tell apart.
// Of those, the rules admit the one with the smallest numbers; without them a sum of eight equal terms would
// be found 40,320 times.
#pragma once

#include <cstdint>
#include <vector>

#include "tessera/pattern/pattern.h"

namespace tessera::pattern {

/// The image of `smaller` has a smaller number than that of `larger`; for externals, no larger one.
struct OrderRule {
  enum class Of : std::uint8_t { nodes, externals };
  Of of = Of::nodes;
  std::uint32_t smaller = 0;
  std::uint32_t larger = 0;
};

/// Rules that every orbit of equivalent matches has a match for. `is_commutative` says of each node whether
/// its inputs may be permuted. Beyond a few dozen nodes and externals, or where the search for symmetries
/// takes too long, some rules may be missing: then equivalent matches are listed several times.
[[nodiscard]] std::vector<OrderRule> find_order_rules(const Variant& variant,
                                                      const std::vector<PatternExternal>& externals,
                                                      const std::vector<bool>& is_commutative);

}  // namespace tessera::pattern
