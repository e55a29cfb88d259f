// x + 0, neg(neg(x)), where(true, x, y), casts to the dtype a value has: what algebra says is simpler. The
// rules are in algebra_rules.h, each with the numbers it holds for.
#pragma once

#include "tessera/compile/pass.h"

namespace tessera::compile {

/// A rule that could change a float is applied only where PassOptions::floats allows it.
[[nodiscard]] Result<ir::FunctionRef> simplify_algebra(const ir::FunctionRef& function, PassContext& context);

}  // namespace tessera::compile
