// Walking a graph: every node once, whatever its depth and sharing.
#pragma once

#include <vector>

#include "tessera/ir/node.h"

namespace tessera::ir {

/// The nodes below and including `root`, each once, children before parents, in the order of the fields.
[[nodiscard]] std::vector<const Node*> post_order(const Node& root);

}  // namespace tessera::ir
