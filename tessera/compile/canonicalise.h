// One way to write one thing, so that the passes behind find what is equal: no aliases, no tuples that are
// taken apart again, attributes complete, operands of commutative ops in order, axes counted from the front,
// squeeze and unsqueeze as reshape, constants as operands.
#pragma once

#include "tessera/compile/pass.h"

namespace tessera::compile {

/// What runs after may rely on this form for speed, never for being right.
[[nodiscard]] Result<ir::FunctionRef> canonicalise(const ir::FunctionRef& function, PassContext& context);

}  // namespace tessera::compile
