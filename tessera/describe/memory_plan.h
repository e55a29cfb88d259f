// Where every buffer lies. A temporary buffer takes memory of another only if every step that uses the other
// is ordered before the first that uses it: by a path of waits, not by a position in a list.
#pragma once

#include "tessera/describe/schedule.h"

namespace tessera::description {

/// Plans the memory of a graph whose buffers all have types. The branches of a region are planned first; what
/// they need is then one piece of memory that the region's step uses.
[[nodiscard]] MemoryPlan plan_memory(const Graph& graph, const std::vector<Sequence>& sequences);

}  // namespace tessera::description
