// Reshapes, transposes and broadcasts that cancel or make one. A transpose moves down through element-wise
// ops as long as that does not make more of them, so that it meets its inverse.
#pragma once

#include "tessera/compile/pass.h"

namespace tessera::compile {

/// Elements are moved, never computed: exact for every dtype.
[[nodiscard]] Result<ir::FunctionRef> simplify_views(const ir::FunctionRef& function, PassContext& context);

}  // namespace tessera::compile
