// Gradients of functions, from the gradients of the cards: through regions, and of gradients too.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "tessera/autodiff/rules.h"
#include "tessera/base/result.h"
#include "tessera/ir/function.h"

namespace tessera::autodiff {

/// The vector-Jacobian product: a function that takes the parameters of `function` and then one gradient for
/// each of its float results, and gives the gradients of the parameters named in `wrt`, zeros where nothing
/// depends on one. Parameters in `wrt` must be float tensors. A `while` on the way must have a limit.
[[nodiscard]] Result<ir::FunctionRef> vjp(const ir::FunctionRef& function, std::span<const std::size_t> wrt,
                                          const Rules& rules = {});

/// The Jacobian-vector product: a function that takes the parameters of `function` and then one tangent for
/// each parameter in `wrt`, and gives the tangents of its float results. Loops keep nothing.
[[nodiscard]] Result<ir::FunctionRef> jvp(const ir::FunctionRef& function, std::span<const std::size_t> wrt,
                                          const Rules& rules = {});

/// All float parameters of a function.
[[nodiscard]] std::vector<std::size_t> float_parameters(const ir::Function& function);

}  // namespace tessera::autodiff
