// Which ops can be in one fused loop at all.
//
// An op's iteration space is what its loop runs over: the result of an element-wise op or a broadcast, the
// input of a reduction. Ops with one iteration space that are joined by edges form a group; every region that
// can be grown lies in one group.
#pragma once

#include <vector>

#include "tessera/pattern/graph.h"

namespace tessera::pattern {

struct FusionGroups {
  std::vector<std::vector<NodeId>> groups;  ///< each ascending by position; ordered by their first node
  std::vector<std::uint32_t> group_of;      ///< by node; `none` if it can be in no region
  std::uint32_t without_shape = 0;          ///< ops that would be in a group if their shapes were known
};

/// Linear.
[[nodiscard]] FusionGroups find_fusion_groups(const Graph& graph);

}  // namespace tessera::pattern
