// The maximal regions of a fusion group: connected, convex, and no op can be added.
//
// Two ops of a group exclude each other if a path between them leaves the group: whatever contains both is
// not convex. "u excludes v" is a partial order; a set of ops without excluding pairs that cannot be larger
// is convex, because what lies between two of its ops could be added. So the maximal regions are found among
// the connected parts of the maximal sets without excluding pairs. Ops that exclude the same others are taken
// together, and the sets are built by adding one such class after another; their number never shrinks, so no
// work is in vain.
#pragma once

#include <vector>

#include "tessera/cover/effort.h"
#include "tessera/pattern/convexity.h"
#include "tessera/pattern/fusion_groups.h"

namespace tessera::pattern {

struct MaximalRegions {
  std::vector<std::vector<NodeId>> regions;  ///< each ascending; sorted
  bool is_complete = true;
};

/// Where a group is too large or has too many maximal regions, some are grown from single ops, and the list
/// is not complete. Neither is it if the effort is over before.
[[nodiscard]] MaximalRegions find_maximal_regions(const Graph& graph, const FusionGroups& groups,
                                                  std::uint32_t group, Convexity& convexity,
                                                  cover::Effort& effort);

}  // namespace tessera::pattern
