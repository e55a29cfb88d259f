// Walking a graph: every node once, whatever its depth and sharing.
#pragma once

#include <vector>

#include "tessera/ir/function.h"

namespace tessera::ir {

/// The nodes below and including `root`, each once, children before parents, in the order of the fields.
[[nodiscard]] std::vector<const Node*> post_order(const Node& root);

/// `root` and every function below it (the bodies of regions, the functions it calls), each once, inner ones
/// first.
[[nodiscard]] std::vector<const Function*> functions_below(const Function& root);

}  // namespace tessera::ir
