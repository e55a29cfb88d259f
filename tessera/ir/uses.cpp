#include "tessera/ir/uses.h"

#include "tessera/ir/node_table.h"
#include "tessera/ir/seal.h"

using namespace tessera;

namespace {

/// Whether one may look at the arguments alone.
bool has_constant_sizes(const ir::Attributes& attributes) {
  for (const auto& [name, value] : attributes.entries())
    if (const auto* shape = std::get_if<ir::Shape>(&value))
      for (const ir::Dim& dim : *shape)
        if (!dim.is_constant()) return false;
  return true;
}

}  // namespace

void tessera::ir::for_each_use(const ir::Node& node, const std::function<void(const ir::Var&)>& f) {
  if (const auto* call = ir::as<ir::Call>(node); call != nullptr && has_constant_sizes(call->attrs)) {
    for (const auto& arg : call->args) for_each_use(*arg, f);
    return;
  }
  if (const auto* var = ir::as<ir::Var>(node)) return f(*var);
  if (!node.has_variables()) return;
  SmallVector<const ir::Node*, 16> stack{&node};
  while (!stack.empty()) {
    const ir::Node& next = *stack.back();
    stack.pop_back();
    if (const auto* var = ir::as<ir::Var>(next)) {
      f(*var);
    } else if (next.has_variables() && !ir::is<ir::Function>(next)) {
      ir::for_each_child(next, [&](const ir::Node& child) { stack.push_back(&child); });
    }
  }
}

std::vector<bool> tessera::ir::used_parameters(const ir::Function& function) {
  ir::NodeTable<bool> used;
  const auto mark = [&](const ir::Var& var) { used[var] = true; };
  for (const auto& statement : function.body) {
    for_each_use(*statement->value, mark);
    for (const auto& target : statement->targets) for_each_use(*target->type, mark);
  }
  for (const auto& result : function.results) for_each_use(*result, mark);
  std::vector<bool> out;
  for (const auto& param : function.params) out.push_back(used.find(*param) != nullptr);
  return out;
}

ir::FunctionRef tessera::ir::with_parameters(const ir::FunctionRef& function, const std::vector<bool>& keep) {
  auto draft = std::make_unique<ir::Function>(*function);
  draft->params.clear();
  for (std::size_t i = 0; i < function->params.size(); ++i)
    if (keep[i]) draft->params.push_back(function->params[i]);
  return ir::seal(std::move(draft));
}
