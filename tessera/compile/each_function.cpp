#include "tessera/compile/each_function.h"

#include <algorithm>
#include <unordered_set>

#include "tessera/ir/node_table.h"
#include "tessera/ir/seal.h"
#include "tessera/ir/walk.h"

using namespace tessera;

namespace {

/// Times that functions are gone over; a rule that keeps making new ones is left at that.
constexpr int most_times_over = 8;

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

/// Whether there are functions below that are not among `known`: the rule of a function around them dropped
/// something in them.
bool has_others(const ir::Function& function, const std::unordered_set<const ir::Function*>& known) {
  const auto all = ir::functions_below(function);
  return std::any_of(all.begin(), all.end(), [&](const auto* one) { return known.count(one) == 0; });
}

}  // namespace

Result<ir::FunctionRef> tessera::compiler::rewrite_functions(const ir::FunctionRef& root,
                                                             const FunctionRule& rule) {
  ir::FunctionRef out = root;
  for (int round = 0; round < most_times_over; ++round) {
    Done done;
    std::unordered_set<const ir::Function*> results;
    for (const ir::Function* function : ir::functions_below(*out)) {
      const auto& result = done[*function] =
          TESSERA_TRY(rule(with_new_functions(ir::FunctionRef(function), done)));
      results.insert(result.get());
    }
    out = *done.find(*out);
    if (results.size() == 1 || !has_others(*out, results)) break;
  }
  return out;
}
