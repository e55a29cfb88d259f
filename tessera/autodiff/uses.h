// Which variables a part of a function mentions. The bodies of regions are closed and are not entered.
#pragma once

#include <functional>
#include <vector>

#include "tessera/ir/function.h"

namespace tessera::autodiff {

namespace detail {
/// Whether one may look at the arguments of a call alone.
[[nodiscard]] bool has_constant_sizes(const ir::Attributes& attributes);
void walk_uses(const ir::Node& node, const std::function<void(const ir::Var&)>& f);
}  // namespace detail

/// Calls `f` for every mention of a variable in an expression or a type.
template <class F>
void for_each_use(const ir::Node& node, F&& f) {
  if (const auto* call = ir::as<ir::Call>(node); call != nullptr && detail::has_constant_sizes(call->attrs)) {
    for (const auto& arg : call->args) {
      if (const auto* var = ir::as<ir::Var>(*arg))
        f(*var);
      else if (arg->has_variables())
        detail::walk_uses(*arg, f);
    }
  } else if (const auto* var = ir::as<ir::Var>(node)) {
    f(*var);
  } else if (node.has_variables()) {
    detail::walk_uses(node, f);
  }
}

/// For each parameter whether the function mentions it.
[[nodiscard]] std::vector<bool> used_parameters(const ir::Function& function);

/// The function without the parameters for which `keep` is false. REQUIRES that it does not use them.
[[nodiscard]] ir::FunctionRef with_parameters(const ir::FunctionRef& function, const std::vector<bool>& keep);

}  // namespace tessera::autodiff
