#include "tessera/compile/each_function.h"

#include "tessera/ir/node_table.h"
#include "tessera/ir/seal.h"
#include "tessera/ir/walk.h"

using namespace tessera;

namespace {

bool may_hold_functions(const ir::Expr& value) {
  return value.kind() >= ir::NodeKind::invoke && value.kind() <= ir::NodeKind::for_region;
}

using Done = ir::NodeTable<ir::FunctionRef>;

ir::ExprRef with_new_functions(const ir::ExprRef& value, Done& done) {
  return ir::visit_node(*value, [&]<class N>(const N& node) -> ir::ExprRef {
    if constexpr (N::node_kind >= ir::NodeKind::invoke && N::node_kind <= ir::NodeKind::for_region) {
      bool changed = false;
      auto draft = std::make_unique<N>(node);
      ir::transform_children(*draft, [&]<class T>(const Ref<T>& child) -> Ref<T> {
        if constexpr (std::is_same_v<T, ir::Function>) {
          const Ref<T>& next = *done.find(*child);
          changed = changed || next != child;
          return next;
        } else {
          return child;
        }
      });
      return changed ? ir::ExprRef(ir::seal(std::move(draft))) : value;
    } else {
      return value;
    }
  });
}

ir::FunctionRef with_new_functions(const ir::FunctionRef& function, Done& done) {
  std::unique_ptr<ir::Function> draft;
  for (std::size_t i = 0; i < function->body.size(); ++i) {
    const auto& statement = function->body[i];
    if (!may_hold_functions(*statement->value)) continue;
    ir::ExprRef value = with_new_functions(statement->value, done);
    if (value == statement->value) continue;
    if (draft == nullptr) draft = std::make_unique<ir::Function>(*function);
    draft->body[i] = ir::assign(statement->targets, std::move(value), statement->span());
  }
  return draft == nullptr ? function : ir::seal(std::move(draft));
}

}  // namespace

Result<ir::FunctionRef> tessera::compiler::rewrite_functions(const ir::FunctionRef& root,
                                                             const FunctionRule& rule) {
  Done done;
  for (const ir::Function* function : ir::functions_below(*root))
    done[*function] = TESSERA_TRY(rule(with_new_functions(ir::FunctionRef(function), done)));
  return *done.find(*root);
}
