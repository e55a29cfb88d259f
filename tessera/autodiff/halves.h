// A gradient in two steps: the function itself, which also gives what its gradient reads of it, and the
// gradient, which takes that.
#pragma once

#include <cstddef>
#include <vector>

#include "tessera/ir/function.h"

namespace tessera::autodiff {

struct Halves {
  ir::FunctionRef forward;         ///< the parameters of the function to its results and then what is kept
  ir::FunctionRef backward;        ///< these parameters, what is kept, and gradients of results to gradients
  std::vector<Ref<ir::Var>> kept;  ///< as both name it; the sizes are those of the function
};

/// Cuts a gradient in two. `whole` takes the parameters of `function` and then gradients; its first
/// `forward_count` statements, which depend on the parameters alone, are those of `function`. What has no
/// type that can be handed out, and what depends on nothing, is computed again.
[[nodiscard]] Halves cut_in_halves(const ir::Function& whole, const ir::Function& function,
                                   std::size_t forward_count);

}  // namespace tessera::autodiff
