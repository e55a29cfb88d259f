#include "tessera/compile/decompose.h"

#include "tessera/compile/each_function.h"
#include "tessera/compile/function_draft.h"

using namespace tessera;
using namespace tessera::compile;

namespace {

class Decompose {
 public:
  Decompose(const ir::FunctionRef& function, PassContext& context)
      : function_(function), context_(context), draft_(function) {}

  ir::FunctionRef run() {
    for (const auto& statement : function_->body) {
      const auto current = draft_.current(statement);
      if (!write_parts(*current)) draft_.keep(current);
    }
    return draft_.finish();
  }

 private:
  bool write_parts(const ir::Assign& statement) {
    const auto* call = ir::as<ir::Call>(statement.value);
    const op::Card* card = call == nullptr ? nullptr : op::find_card(call->op);
    if (card == nullptr || card->decompose == nullptr) return false;
    const op::ValueTypes types = operand_types(*call);
    const auto attributes = op::complete_attributes(*card, call->attrs);
    if (types.size() != call->args.size() || !attributes) return false;
    const op::CallInfo info(*card, types, *attributes);
    if (context_.options().takes(info)) return false;
    std::vector<op::Value> inputs;
    for (const auto& arg : call->args) inputs.push_back(draft_.value(arg));
    const op::Values results = card->decompose(draft_.builder(), info, inputs);
    if (!fit(results, statement)) return false;
    for (std::size_t i = 0; i < results.size(); ++i)
      draft_.replace(*statement.targets[i], draft_.builder().expr(results[i]));
    context_.note(cat(card->name, " by its parts"), statement.span());
    return true;
  }

  /// Whether the results are tensors with the types of the targets. What does not fit is dead code.
  bool fit(const op::Values& results, const ir::Assign& statement) {
    if (results.size() != statement.targets.size()) return false;
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (!results[i] || results[i].type() != op::value_type(*statement.targets[i]->type)) return false;
      const auto* var = ir::as<ir::Var>(draft_.builder().expr(results[i]));
      if (var == nullptr || !ir::is<ir::TensorType>(var->type)) return false;
    }
    return true;
  }

  const ir::FunctionRef& function_;
  PassContext& context_;
  FunctionDraft draft_;
};

}  // namespace

Result<ir::FunctionRef> tessera::compile::decompose(const ir::FunctionRef& function, PassContext& context) {
  if (!context.options().takes) return function;
  return rewrite_functions(function, [&](const ir::FunctionRef& one) -> Result<ir::FunctionRef> {
    // Parts may be composite themselves; the catalogue says how deep.
    ir::FunctionRef before, after = one;
    while (before != after) {
      before = after;
      after = Decompose(before, context).run();
    }
    return after;
  });
}
