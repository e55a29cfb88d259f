// Forward mode on one function: what jvp and the derivatives of regions are made of.
#pragma once

#include <cstddef>
#include <span>

#include "tessera/autodiff/rules.h"
#include "tessera/base/result.h"
#include "tessera/ir/function.h"

namespace tessera::autodiff {

/// A function of the parameters of `function` and of one tangent for each of its parameters in `wrt`. It
/// gives the results of `function`, then the tangents of those in `outs`, zeros where nothing depends on
/// `wrt`. `wrt` are float parameters, `outs` float results. Loops keep nothing, so a `while` needs no limit.
[[nodiscard]] Result<ir::FunctionRef> forward(const ir::FunctionRef& function,
                                              std::span<const std::size_t> wrt,
                                              std::span<const std::size_t> outs, const Rules& rules);

}  // namespace tessera::autodiff
