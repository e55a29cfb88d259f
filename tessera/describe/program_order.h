// The order of all nodes and regions, from edges, dependencies and what they do with buffers alone.
//
// Program order is the order of the listing as far as edges and dependencies allow; access_order.h says where
// a buffer has its own. From it follow the waits of every step: read after write, write after read, write
// after write. A region is one step of the scope it stands in, with all that its branches do with buffers
// that others see.
#pragma once

#include <functional>

#include "tessera/describe/schedule.h"

namespace tessera::description {

/// The sequences of all scopes. Cycles are errors: each is named link by link and reported in every block it
/// passes. Also found here: region buffers that are used outside their region, or read before anything writes
/// them.
[[nodiscard]] std::vector<Sequence> order_steps(const Graph& graph, Report& report);

/// Everybody who uses a region buffer must stand in its region.
void check_homes(const Graph& graph, Report& report);

/// Calls `visit(node)` for every node in program order, bodies of regions where the region stands.
void for_each_node_in_order(const Graph& graph, const std::vector<Sequence>& sequences,
                            const std::function<void(std::uint32_t node)>& visit);

}  // namespace tessera::description
