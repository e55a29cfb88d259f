// The symmetries of a pattern, as rules that let one of several equivalent matches through.
//
// A pattern may be mapped onto itself: the operands of an addition swapped, eight equal branches permuted.
// Two matches that differ only by such a mapping bind the same values to parts that nothing can tell apart.
// Of those, the rules admit the one with the smallest numbers; without them a sum of eight equal terms would
// be found 40,320 times.
//
// The rules follow from an order of the vertices, core first (pattern_shape.h): each has the smallest number
// among those that it can still be exchanged with while the ones before it stay. In the trees that hang on
// the core these are its equal siblings, which are found in near-linear time however large the pattern is.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/pattern/pattern.h"

namespace tessera::pattern {

/// The image of `smaller` has a smaller number than that of `larger`; for externals, no larger one.
struct OrderRule {
  std::uint32_t smaller = 0;
  std::uint32_t larger = 0;
};

struct Symmetries {
  std::vector<OrderRule> nodes;
  std::vector<OrderRule> externals;
  /// Externals that one commutative node takes, nothing else takes, and nothing tells apart: they get their
  /// values in ascending order.
  std::vector<std::vector<std::uint32_t>> equal_externals;
};

/// Every orbit of equivalent matches has exactly one that follows the rules. `is_commutative` says of each
/// node whether its inputs may be permuted; `rank` orders the nodes: those that come first get the smaller
/// numbers, so a search that binds nodes in this order meets the rules early. Where the core is very large or
/// hard, some rules may be missing: then equivalent matches are listed several times.
[[nodiscard]] Symmetries find_symmetries(const Variant& variant,
                                         const std::vector<PatternExternal>& externals,
                                         const std::vector<bool>& is_commutative,
                                         std::span<const std::uint32_t> rank);

}  // namespace tessera::pattern
