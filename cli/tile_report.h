// What `tessera tile` says of a tiling: as JSON, as text, as a picture, and as traces.
#pragma once

#include <string>

#include "tessera/base/result.h"
#include "tessera/pattern/graph.h"
#include "tessera/pattern/tiler.h"

namespace tessera::cli {

/// One line: {"nodes":4,"coverage":4,"cost":2,"tiles":[…],…}. docs/pattern.md lists the fields.
[[nodiscard]] std::string to_json(const pattern::Graph& graph, const pattern::Tiling& tiling);

/// For people: a line that sums up, a line for each tile in the order in which they run, the uncovered nodes.
[[nodiscard]] std::string to_text(const pattern::Graph& graph, const pattern::Tiling& tiling);

/// For Graphviz: tiles as coloured clusters, uncovered nodes dashed.
[[nodiscard]] std::string to_dot(const pattern::Graph& graph, const pattern::Tiling& tiling);

/// Writes candidates.txt, subproblems.txt and result.txt into `folder`, which is made if it is not there.
/// REQUIRES the tiling has its list of candidates.
[[nodiscard]] Result<void> write_trace(const std::string& folder, const pattern::Graph& graph,
                                       const pattern::Target& target, const pattern::Tiling& tiling);

}  // namespace tessera::cli
