#include "tessera/compile/purity.h"

#include "tessera/ir/visit.h"
#include "tessera/ir/walk.h"
#include "tessera/op/catalogue.h"

using namespace tessera;

namespace {

bool is_pure_call(const ir::Expr& value) {
  const auto* call = ir::as<ir::Call>(value);
  if (call == nullptr) return true;
  const op::Card* card = op::find_card(call->op);
  return card != nullptr && !card->traits.random;
}

bool is_pure_function(const ir::Function& root) {
  for (const ir::Function* function : ir::functions_below(root))
    for (const auto& statement : function->body)
      if (!is_pure_call(*statement->value)) return false;
  return true;
}

}  // namespace

bool tessera::compiler::is_pure(const ir::Expr& value) {
  if (value.kind() < ir::NodeKind::invoke) return is_pure_call(value);
  bool out = true;
  ir::for_each_child(value, [&](const ir::Node& child) {
    if (const auto* function = ir::as<ir::Function>(child)) out = out && is_pure_function(*function);
  });
  return out;
}
