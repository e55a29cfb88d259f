// Which variables a part of a function mentions. The bodies of regions are closed and are not entered.
#pragma once

#include <functional>
#include <vector>

#include "tessera/ir/function.h"

namespace tessera::ir {

/// Calls `f` for every mention of a variable in an expression or a type.
void for_each_use(const Node& node, const std::function<void(const Var&)>& f);

/// For each parameter whether the function mentions it.
[[nodiscard]] std::vector<bool> used_parameters(const Function& function);

/// The function without the parameters for which `keep` is false. REQUIRES that it does not use them.
[[nodiscard]] FunctionRef with_parameters(const FunctionRef& function, const std::vector<bool>& keep);

}  // namespace tessera::ir
