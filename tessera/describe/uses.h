// What nodes and regions do with buffers, as the scope they stand in sees it.
#pragma once

#include <vector>

#include "tessera/describe/graph.h"

namespace tessera::description {

/// What one item does with one buffer.
struct Use {
  std::uint32_t buffer = 0;
  bool reads = false;  ///< must come after what others wrote before
  bool looks = false;  ///< looks at it; a loop that only writes does not, but may leave it as it was
  bool writes = false;
  bool defines = false;  ///< writes the whole before it reads any: what was there before does not matter
  bool appends = false;
  bool may_skip = false;  ///< defines it in some branches only: it is zeroed first

  std::uint32_t from_node = no_index;  ///< the pin whose value an edge brings here, for a node
  std::uint32_t from_pin = no_index;
};

/// The scopes that use each buffer, condensed: where a buffer's users have their innermost common scope, and
/// whether it has any.
struct BufferScopes {
  std::vector<std::uint32_t> common;  ///< by buffer; no_index without users
  /// Where the counter of an append buffer is reset.
  [[nodiscard]] static std::uint32_t reset_scope(const Graph& graph, std::uint32_t buffer);
};
[[nodiscard]] BufferScopes buffer_scopes(const Graph& graph);

/// The uses of a node, one per buffer.
[[nodiscard]] std::vector<Use> uses_of_node(const GraphNode& node);

/// The uses of a region from outside: those of its branches, where others can see the buffer, with the
/// condition and the index. `branch_uses` has, for each branch, one use per buffer: that of the branch as a
/// whole.
[[nodiscard]] std::vector<Use> uses_of_region(const Graph& graph, std::uint32_t region,
                                              const std::vector<std::vector<Use>>& branch_uses);

}  // namespace tessera::description
