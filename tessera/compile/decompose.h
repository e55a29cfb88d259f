// Composite ops that the target has no kernel for are written out as the ops their cards say they stand for.
#pragma once

#include "tessera/compile/pass.h"

namespace tessera::compile {

/// PassOptions::takes says what the target has.
[[nodiscard]] Result<ir::FunctionRef> decompose(const ir::FunctionRef& function, PassContext& context);

}  // namespace tessera::compile
