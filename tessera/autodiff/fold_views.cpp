#include "tessera/autodiff/fold_views.h"

#include <algorithm>
#include <unordered_map>

#include "tessera/ir/node_table.h"
#include "tessera/ir/rewrite.h"
#include "tessera/ir/seal.h"
#include "tessera/ir/uses.h"
#include "tessera/op/catalogue.h"
#include "tessera/op/ir_builder.h"

using namespace tessera;

namespace {

class FoldViews {
 public:
  ir::FunctionRef run(const ir::FunctionRef& function) {
    std::vector<Ref<ir::Assign>> body;
    body.reserve(function->body.size());
    bool changed = false;
    for (const auto& statement : function->body) {
      body.push_back(folded(with_known_values(statement)));
      changed = changed || body.back() != statement;
      const auto* call = ir::as<ir::Call>(body.back()->value);
      if (call == nullptr || (call->op != "broadcast_to" && call->op != "transpose")) continue;
      any_ = true;
      views_[*statement->targets[0]] = call;
      if (changes_nothing(*call)) same_as_[statement->targets[0].get()] = call->args[0];
    }
    if (!changed) return function;
    auto draft = std::make_unique<ir::Function>(*function);
    draft->body = std::move(body);
    for (ir::ExprRef& result : draft->results) result = replaced(result);
    return ir::seal(std::move(draft));
  }

 private:
  static bool changes_nothing(const ir::Call& call) {
    const auto* permutation = call.attrs.get<std::vector<std::int64_t>>("permutation");
    return call.op == "transpose" && permutation != nullptr && !permutation->empty() &&
           std::is_sorted(permutation->begin(), permutation->end()) && permutation->front() >= 0;
  }

  Ref<ir::Assign> with_known_values(const Ref<ir::Assign>& statement) {
    ir::ExprRef value = replaced(statement->value);
    return value == statement->value ? statement
                                     : ir::assign(statement->targets, std::move(value), statement->span());
  }

  ir::ExprRef replaced(const ir::ExprRef& expr) {
    bool found = false;
    if (!same_as_.empty())
      ir::for_each_use(*expr, [&](const ir::Var& var) { found = found || same_as_.count(&var) != 0; });
    if (!found) return expr;
    const ir::NodeRef out = ir::replace_variables(expr, [&](const ir::Var& var) {
      const auto known = same_as_.find(&var);
      return known == same_as_.end() ? ir::ExprRef() : known->second;
    });
    return ir::ExprRef(static_cast<const ir::Expr*>(out.get()));
  }

  Ref<ir::Assign> folded(const Ref<ir::Assign>& statement) {
    const auto* call = any_ ? ir::as<ir::Call>(statement->value) : nullptr;
    if (call == nullptr || !takes_view(*call)) return statement;
    std::unique_ptr<ir::Call> draft = call->op == "transpose" ? joined(*call) : nullptr;
    if (draft == nullptr && op::find_card(call->op) != nullptr && op::find_card(call->op)->traits.elementwise)
      draft = without_broadcasts(*call, statement->targets[0]->type);
    return draft == nullptr ? statement
                            : ir::assign(statement->targets, ir::seal(std::move(draft)), statement->span());
  }

  bool takes_view(const ir::Call& call) {
    return std::any_of(call.args.begin(), call.args.end(),
                       [&](const auto& arg) { return ir::is<ir::Var>(arg) && views_.find(*arg) != nullptr; });
  }

  const ir::Call* view(const ir::Expr& operand, std::string_view op) {
    const auto* var = ir::as<ir::Var>(operand);
    const ir::Call** known = var == nullptr ? nullptr : views_.find(*var);
    return known != nullptr && (*known)->op == op ? *known : nullptr;
  }

  std::unique_ptr<ir::Call> joined(const ir::Call& call) {
    const ir::Call* first = view(*call.args[0], "transpose");
    const auto* outer = call.attrs.get<std::vector<std::int64_t>>("permutation");
    const auto* inner =
        first == nullptr ? nullptr : first->attrs.get<std::vector<std::int64_t>>("permutation");
    if (outer == nullptr || inner == nullptr || outer->size() != inner->size()) return nullptr;
    std::vector<std::int64_t> both;
    for (std::int64_t axis : *outer)
      both.push_back((*inner)[static_cast<std::size_t>(axis < 0 ? axis + std::ssize(*inner) : axis)]);
    auto draft = std::make_unique<ir::Call>(call);
    draft->args[0] = first->args[0];
    draft->attrs.set("permutation", std::move(both));
    return draft;
  }

  /// REQUIRES an element-wise op. A broadcast is not needed if another argument has the shape of the result.
  std::unique_ptr<ir::Call> without_broadcasts(const ir::Call& call, const ir::TypeRef& result) {
    std::unique_ptr<ir::Call> draft;
    for (std::size_t i = 0; i < call.args.size(); ++i) {
      const ir::Call* broadcast = view(*call.args[i], "broadcast_to");
      if (broadcast == nullptr) continue;
      const auto& args = draft == nullptr ? call.args : draft->args;
      bool other_has_shape = false;
      for (std::size_t k = 0; k < args.size(); ++k)
        other_has_shape = other_has_shape || (k != i && has_shape_of(*args[k], *result));
      if (!other_has_shape) continue;
      if (draft == nullptr) draft = std::make_unique<ir::Call>(call);
      draft->args[i] = broadcast->args[0];
    }
    return draft;
  }

  static bool has_shape_of(const ir::Expr& operand, const ir::Type& type) {
    const auto a = op::operand_type(operand), b = op::value_type(type);
    return a && b && a->shape == b->shape;
  }

  ir::NodeTable<const ir::Call*> views_;
  std::unordered_map<const ir::Var*, ir::ExprRef> same_as_;
  bool any_ = false;
};

}  // namespace

ir::FunctionRef tessera::autodiff::fold_views(const ir::FunctionRef& function) {
  return FoldViews().run(function);
}
