// The statements of a called function take the place of the call, so that tiles can reach across. Runs behind
// merge_equal: what a checkpoint computes again is not merged with what it was computed from.
#pragma once

#include "tessera/compile/pass.h"

namespace tessera::compiler {

/// Calls stay where the callee has size symbols of its own or sizes that depend on data, and where a function
/// would have more than 100,000 statements.
[[nodiscard]] Result<ir::FunctionRef> inline_calls(const ir::FunctionRef& function, PassContext& context);

}  // namespace tessera::compiler
