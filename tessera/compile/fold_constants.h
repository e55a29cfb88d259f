// Calls of constants become constants, by the reference kernels, within a budget of bytes and work. A call
// that fails stays: the error belongs to the run.
#pragma once

#include "tessera/compile/pass.h"

namespace tessera::compile {

/// PassOptions::fold_bytes and fold_work are the budget.
[[nodiscard]] Result<ir::FunctionRef> fold_constants(const ir::FunctionRef& function, PassContext& context);

}  // namespace tessera::compile
