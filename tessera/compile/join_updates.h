// Updates that one after another replace all of an array along one axis are its parts, joined: nothing of
// what was there before is left, so it need not be filled, nor the array be written twice. Gradients of the
// parts of a value are written like that.
#pragma once

#include "tessera/compile/pass.h"

namespace tessera::compiler {

/// update_slice(update_slice(x, a), b), where a and b lie side by side and are all of x, is concat(a, b).
[[nodiscard]] Result<ir::FunctionRef> join_updates(const ir::FunctionRef& function, PassContext& context);

}  // namespace tessera::compiler
