// The matches of a pattern by trying every map of its nodes, straight from the definition. Shares no code
// with the matcher. For patterns without optional and repeated nodes, attributes and conditions.
#pragma once

#include <set>
#include <vector>

#include "tessera/pattern/graph.h"
#include "tessera/pattern/pattern.h"

namespace tessera::test {

/// Which node and which value each node and each external of the pattern stands for.
struct BruteMatch {
  std::vector<pattern::NodeId> images;
  std::vector<pattern::ValueId> externals;

  auto operator<=>(const BruteMatch&) const = default;
};

/// All of them, those that a symmetry of the pattern maps onto each other too. Exponential.
[[nodiscard]] std::set<BruteMatch> brute_force_matches(const pattern::Graph& graph,
                                                       const pattern::PatternParts& parts);

/// The match and all that differ from it by a symmetry of the pattern: by a permutation of nodes and
/// externals that maps the pattern onto itself. Exponential.
[[nodiscard]] std::set<BruteMatch> symmetric_matches(const pattern::Graph& graph,
                                                     const pattern::PatternParts& parts,
                                                     const BruteMatch& match);

}  // namespace tessera::test
