// Makes a gradient small: what nothing uses goes, what is computed twice is computed once, views of views are
// one. The bodies of regions stay as they are; gradients simplify them when they make them.
#pragma once

#include "tessera/ir/function.h"

namespace tessera::autodiff {

/// Whether a function may compute something twice.
enum class Repetition : bool { none, possible };

/// The function itself if nothing can go.
[[nodiscard]] ir::FunctionRef simplified(const ir::FunctionRef& function,
                                         Repetition repetition = Repetition::possible);

}  // namespace tessera::autodiff
