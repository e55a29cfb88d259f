#include "tessera/compile/inline_calls.h"

#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/compile/constants.h"
#include "tessera/compile/each_function.h"
#include "tessera/compile/function_draft.h"

using namespace tessera;
using namespace tessera::compiler;

namespace {

constexpr std::size_t most_statements = 100'000;

bool has_constant_shape(const ir::Var& var) {
  const auto* tensor = ir::as<ir::TensorType>(*var.type);
  if (tensor == nullptr) return ir::is<ir::ScalarType>(*var.type);
  return std::all_of(tensor->shape.begin(), tensor->shape.end(),
                     [](const ir::Dim& dim) { return dim.is_constant(); });
}

class InlineCalls {
 public:
  InlineCalls(const ir::FunctionRef& function, PassContext& context)
      : function_(function), context_(context), draft_(function), statements_(function->body.size()) {}

  ir::FunctionRef run() {
    for (const auto& statement : function_->body) {
      const Ref<ir::Assign> current = draft_.current(statement);
      const auto* invoke = ir::as<ir::Invoke>(current->value);
      if (invoke == nullptr || !can_inline(*invoke))
        draft_.keep(current);
      else
        write_body(*invoke, *statement);
    }
    return draft_.finish();
  }

 private:
  [[nodiscard]] bool can_inline(const ir::Invoke& invoke) const {
    const ir::Function& callee = *invoke.callee;
    const auto is_operand = [](const ir::ExprRef& expr) {
      return ir::is<ir::Var>(expr) || is_constant(*expr);
    };
    return callee.dims.empty() && invoke.dims.empty() &&
           statements_ + callee.body.size() <= most_statements &&
           std::all_of(invoke.args.begin(), invoke.args.end(), is_operand) &&
           std::all_of(callee.results.begin(), callee.results.end(), is_operand) &&
           std::all_of(callee.body.begin(), callee.body.end(), [](const Ref<ir::Assign>& statement) {
             return std::all_of(statement->targets.begin(), statement->targets.end(),
                                [](const Ref<ir::Var>& target) { return has_constant_shape(*target); });
           });
  }

  /// With variables of its own: the callee may be called again.
  void write_body(const ir::Invoke& invoke, const ir::Assign& call) {
    const ir::Function& callee = *invoke.callee;
    for (std::size_t i = 0; i < callee.params.size(); ++i) draft_.replace(*callee.params[i], invoke.args[i]);
    for (const auto& inner : callee.body) {
      const Ref<ir::Assign> current = draft_.current(inner);
      std::vector<Ref<ir::Var>> targets;
      for (const Ref<ir::Var>& target : inner->targets)
        targets.push_back(ir::variable(target->name, target->type, target->span()));
      draft_.keep(ir::assign(targets, current->value, inner->span()));
      for (std::size_t i = 0; i < targets.size(); ++i) draft_.replace(*inner->targets[i], targets[i]);
    }
    for (std::size_t i = 0; i < call.targets.size(); ++i)
      draft_.replace(*call.targets[i], draft_.operand(callee.results[i]));
    statements_ += callee.body.size();
    context_.note(cat("the body of ", callee.name), call.span());
  }

  const ir::FunctionRef& function_;
  PassContext& context_;
  FunctionDraft draft_;
  std::size_t statements_;
};

}  // namespace

Result<ir::FunctionRef> tessera::compiler::inline_calls(const ir::FunctionRef& function,
                                                        PassContext& context) {
  return rewrite_functions(function, [&](const ir::FunctionRef& one) -> Result<ir::FunctionRef> {
    return InlineCalls(one, context).run();
  });
}
