// The structural hash: equal nodes have equal hashes, in the same mode.
#pragma once

#include "tessera/base/hash.h"
#include "tessera/ir/node.h"
#include "tessera/ir/structural_mode.h"

namespace tessera::ir {

/// Linear in the number of distinct nodes, whatever their depth. In mapping mode, for closed functions, and
/// for variables declared in a text, the value is the same in every process; else strict mode hashes a free
/// variable by its identity in this process.
[[nodiscard]] Hash128 structural_hash(const Node& node, CompareMode mode);

}  // namespace tessera::ir
