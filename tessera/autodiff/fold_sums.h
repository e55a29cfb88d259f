// Writes a sum with a scatter into zeros as a scatter into the other summand: what a gradient adds up over
// the iterations of a loop is then changed where it must be, and not copied.
#pragma once

#include "tessera/ir/function.h"

namespace tessera::autodiff {

/// The function itself if there is nothing to do. What is no longer used stays: it is dead code.
[[nodiscard]] ir::FunctionRef fold_sums(const ir::FunctionRef& function);

}  // namespace tessera::autodiff
