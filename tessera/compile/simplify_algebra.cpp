#include "tessera/compile/simplify_algebra.h"

#include "tessera/compile/algebra_term.h"
#include "tessera/compile/each_function.h"
#include "tessera/compile/simplify_casts.h"

using namespace tessera;
using namespace tessera::compile;

namespace {

/// A rule may make room for another one at the same place; this many times.
constexpr int most_steps = 8;

class SimplifyAlgebra {
 public:
  SimplifyAlgebra(const ir::FunctionRef& function, PassContext& context)
      : function_(function), context_(context), draft_(function) {}

  ir::FunctionRef run() {
    for (const auto& statement : function_->body) {
      const auto current = draft_.current(statement);
      const ir::ExprRef simpler = simplified(*current);
      if (simpler == nullptr)
        draft_.keep(current);
      else
        draft_.replace(*current->targets[0], simpler);
    }
    return draft_.finish();
  }

 private:
  /// What the only target of a statement is simpler as; null if it stays.
  ir::ExprRef simplified(const ir::Assign& statement) {
    const auto* call = ir::as<ir::Call>(statement.value);
    const ir::Var& target = *statement.targets[0];
    if (call == nullptr || statement.targets.size() != 1 || !ir::is<ir::TensorType>(target.type))
      return nullptr;
    ir::ExprRef out;
    for (int step = 0; call != nullptr && step < most_steps; ++step) {
      ir::ExprRef next = by_rule(*call, target);
      if (next == nullptr) break;
      out = std::move(next);
      call = draft_.call_of(*out);
    }
    return out;
  }

  ir::ExprRef by_rule(const ir::Call& call, const ir::Var& target) {
    if (const ir::ExprRef cast = simpler_cast(call, draft_); cast != nullptr)
      return with_type(draft_.value(cast), "a cast less", call, target);
    for (const ParsedRule& parsed : rules_for(call.op)) {
      Bindings bindings;
      if (!bindings.match(parsed.from, call, draft_) || !holds(*parsed.rule, *bindings.x())) continue;
      const op::Value value = bindings.write(parsed.to, *op::value_type(*target.type), draft_);
      const ir::ExprRef out = with_type(value, cat(parsed.rule->from, " is ", parsed.rule->to), call, target);
      if (out != nullptr) return out;
    }
    return nullptr;
  }

  [[nodiscard]] bool holds(const AlgebraRule& rule, const ir::Expr& x) const {
    const auto type = op::operand_type(x);
    if (!type) return false;
    if (!ir::is_float(type->dtype)) return rule.integers;
    return rule.floats && context_.options().floats >= *rule.floats;
  }

  /// The value with the shape of the target, as an operand that has its type; null if it cannot have it.
  ir::ExprRef with_type(op::Value value, std::string_view what, const ir::Call& call, const ir::Var& target) {
    const auto type = op::value_type(*target.type);
    if (!value || value.dtype() != type->dtype) return nullptr;
    if (value.shape() != type->shape || !is_tensor(*draft_.builder().expr(value)))
      value = op::broadcast_to(value, type->shape);
    if (!value || value.type() != *type || !is_tensor(*draft_.builder().expr(value))) return nullptr;
    context_.note(what, call.span());
    return draft_.builder().expr(value);
  }

  static bool is_tensor(const ir::Expr& operand) {
    const auto* var = ir::as<ir::Var>(operand);
    return var != nullptr ? ir::is<ir::TensorType>(var->type) : ir::is<ir::Dense>(operand);
  }

  const ir::FunctionRef& function_;
  PassContext& context_;
  FunctionDraft draft_;
};

}  // namespace

Result<ir::FunctionRef> tessera::compile::simplify_algebra(const ir::FunctionRef& function,
                                                           PassContext& context) {
  return rewrite_functions(function, [&](const ir::FunctionRef& one) -> Result<ir::FunctionRef> {
    return SimplifyAlgebra(one, context).run();
  });
}
