// Where every buffer lies. A temporary buffer takes memory of another only if every step that uses the other
// is ordered before the first that uses it: by a path of waits, not by a position in a list.
#pragma once

#include "tessera/describe/schedule.h"
#include "tessera/describe/uses.h"

namespace tessera::description {

/// When a temporary buffer holds something.
struct BufferLife {
  std::uint32_t buffer = 0;
  /// That use it, of the sequence where all users meet, ascending; a use inside a region is one of the
  /// region's step. The first is before all others.
  std::vector<std::uint32_t> steps;
};
/// Of all that are used.
[[nodiscard]] std::vector<BufferLife> buffer_lives(const Graph& graph, const std::vector<Sequence>& sequences,
                                                   const BufferScopes& scopes);

/// In what each buffer lies, and the sums that follow from sizes alone; nothing is placed yet.
[[nodiscard]] MemoryPlan find_homes(const Graph& graph, const BufferScopes& scopes);

/// Plans the memory of a graph whose buffers all have types. The branches of a region are planned first; what
/// they need is then one piece of memory that the region's step uses.
[[nodiscard]] MemoryPlan plan_memory(const Graph& graph, const std::vector<Sequence>& sequences);

}  // namespace tessera::description
