// A quick way to cut fusion groups into regions that can all be taken together.
//
// The stage of a node counts how often a path to it (or from it) goes from one group to another or to an op
// of none. A path that leaves a group and comes back raises the count, so the nodes of one group and one
// stage are convex; and since every edge between two such sets raises it, too, all of them can be tiles of
// one tiling.
#pragma once

#include <vector>

#include "tessera/pattern/fusion_groups.h"

namespace tessera::pattern {

/// From which end stages are counted.
enum class StageOrder : std::uint8_t { as_early_as_possible, as_late_as_possible };

/// The connected parts of the stages of all groups, those of two ops or more; each ascending. Linear.
[[nodiscard]] std::vector<std::vector<NodeId>> find_stages(const Graph& graph, const FusionGroups& groups,
                                                           StageOrder order);

}  // namespace tessera::pattern
