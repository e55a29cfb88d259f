// Takes out views that gradients write without knowing what becomes of them: a broadcast before an op that
// broadcasts anyway, a transpose of a transpose.
#pragma once

#include "tessera/ir/function.h"

namespace tessera::autodiff {

/// The function itself if there is nothing to do. Views that are no longer used stay: they are dead code.
[[nodiscard]] ir::FunctionRef fold_views(const ir::FunctionRef& function);

}  // namespace tessera::autodiff
