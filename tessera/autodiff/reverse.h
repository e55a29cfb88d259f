// Reverse mode on one function: what vjp and the gradients of regions are made of.
#pragma once

#include <cstddef>
#include <span>

#include "tessera/autodiff/halves.h"
#include "tessera/autodiff/rules.h"
#include "tessera/base/result.h"
#include "tessera/ir/function.h"

namespace tessera::autodiff {

/// A function of the parameters of `function` and of one gradient for each of its results in `seeds`. It
/// gives the gradients of the parameters in `wrt`, zeros where nothing flows. `seeds` are float results,
/// `wrt` float parameters.
[[nodiscard]] Result<ir::FunctionRef> reverse(const ir::FunctionRef& function,
                                              std::span<const std::size_t> wrt,
                                              std::span<const std::size_t> seeds, const Rules& rules);
/// The same in two steps.
[[nodiscard]] Result<Halves> reverse_in_halves(const ir::FunctionRef& function,
                                               std::span<const std::size_t> wrt,
                                               std::span<const std::size_t> seeds, const Rules& rules);

}  // namespace tessera::autodiff
