// Dead code: statements that nothing uses, and values that a loop carries although neither its results nor
// its other carried values need them.
#pragma once

#include "tessera/ir/function.h"

namespace tessera::autodiff {

/// The function itself if nothing can go. Bodies of loops are looked at only where a carried value goes.
[[nodiscard]] ir::FunctionRef without_dead_code(const ir::FunctionRef& function);

}  // namespace tessera::autodiff
