// Checks what the node types cannot: scopes, single assignment, arity, types, flatness. Says where.
#pragma once

#include <vector>

#include "tessera/base/result.h"
#include "tessera/ir/node.h"

namespace tessera::ir {

/// All violations below `root`, in the order of the text. Ops are not known here: the types of their results
/// are believed (`op/` checks them).
[[nodiscard]] std::vector<Error> verify_all(const Node& root);

/// The first violation.
[[nodiscard]] Result<void> verify(const Node& root);

}  // namespace tessera::ir
