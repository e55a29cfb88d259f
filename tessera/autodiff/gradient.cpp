#include "tessera/autodiff/gradient.h"

#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/ir/describe.h"
#include "tessera/ir/node_table.h"
#include "tessera/op/catalogue.h"
#include "tessera/op/ir_builder.h"

using namespace tessera;
using namespace tessera::autodiff;
using op::Value;
using op::Values;

namespace {

bool is_float_value(const ir::Type& type) {
  const auto value = op::value_type(type);
  return value && ir::is_float(value->dtype);
}

/// Goes over a function forwards, writing it down, and then backwards, writing its gradient.
class Reverse {
 public:
  explicit Reverse(const ir::FunctionRef& function) : function_(*function) {}

  Result<ir::FunctionRef> vjp(std::span<const std::size_t> wrt) {
    for (const auto& dim : function_.dims) builder_.adopt_size(dim);
    for (std::size_t i = 0; i < function_.params.size(); ++i) {
      const bool active = std::find(wrt.begin(), wrt.end(), i) != wrt.end();
      TESSERA_TRY(parameter(*function_.params[i], active));
    }
    for (const auto& statement : function_.body) TESSERA_TRY(forward(statement));
    TESSERA_TRY(seed());
    for (std::size_t i = function_.body.size(); i-- > 0;) TESSERA_TRY(backward(*function_.body[i]));
    return finish(wrt);
  }

 private:
  /// What is known of a variable of the function.
  struct Known {
    Value value;
    Value gradient;
    bool active = false;  ///< depends on a parameter whose gradient is asked for
  };

  Result<void> parameter(const ir::Var& var, bool active) {
    if (active && !is_float_value(*var.type))
      return Error(ErrorCode::invalid_argument,
                   cat("the gradient of parameter '", ir::describe(var), "' of type ",
                       ir::describe(*var.type), " was asked for: it is no float tensor"));
    const auto type = op::value_type(*var.type);
    if (!type) return Error(ErrorCode::unsupported, cat("parameter '", ir::describe(var), "' is a tuple"));
    known_[var] = {builder_.adopt_parameter(Ref<ir::Var>(&var), *type), Value(), active};
    return {};
  }

  Result<void> forward(const Ref<ir::Assign>& statement) {
    builder_.adopt(statement);
    const auto* call = ir::as<ir::Call>(*statement->value);
    bool active = false;
    if (call != nullptr)
      for (const auto& arg : call->args) active = active || is_active(*arg);
    for (const auto& target : statement->targets) {
      const auto type = op::value_type(*target->type);
      if (!type) continue;
      known_[*target] = {builder_.import(target, *type), Value(), active && ir::is_float(type->dtype)};
    }
    return {};
  }

  bool is_active(const ir::Expr& expr) {
    const auto* var = ir::as<ir::Var>(expr);
    const Known* known = var == nullptr ? nullptr : known_.find(*var);
    return known != nullptr && known->active;
  }

  /// One more parameter for the gradient of each float result.
  Result<void> seed() {
    std::size_t index = 0;
    for (const auto& result : function_.results) {
      const auto type = op::operand_type(*result);
      if (!type || !ir::is_float(type->dtype)) continue;
      const Value gradient = builder_.parameter(cat("d", index++), *type);
      if (const auto* var = ir::as<ir::Var>(result)) accumulate(*var, gradient);
    }
    return {};
  }

  void accumulate(const ir::Var& var, Value gradient) {
    Known* known = known_.find(var);
    if (known == nullptr || !known->active || !gradient) return;
    known->gradient = known->gradient ? known->gradient + gradient : gradient;
  }

  Result<void> backward(const ir::Assign& statement) {
    const auto* call = ir::as<ir::Call>(*statement.value);
    if (call == nullptr) return {};
    Values results, gradients;
    bool any = false;
    for (const auto& target : statement.targets) {
      const Known& known = known_[*target];
      results.push_back(known.value);
      gradients.push_back(known.gradient);
      any = any || known.gradient;
    }
    if (!any) return {};
    const op::Card* card = op::find_card(call->op);
    if (card == nullptr)
      return Error(ErrorCode::not_found, cat("there is no op '", printable(call->op), "'"),
                   statement.span().resolve());
    if (card->gradient == nullptr) return missing_gradient(*card, statement);
    return through(*card, *call, results, gradients);
  }

  static Result<void> missing_gradient(const op::Card& card, const ir::Assign& statement) {
    if (!card.no_gradient.empty()) return {};
    return Error(ErrorCode::unsupported, cat("op '", card.name, "' has no gradient"),
                 statement.span().resolve());
  }

  Result<void> through(const op::Card& card, const ir::Call& call, const Values& results,
                       const Values& gradients) {
    Values inputs;
    op::ValueTypes types;
    for (const auto& arg : call.args) {
      inputs.push_back(operand(*arg));
      types.push_back(inputs.back().type());
    }
    const op::Attributes attributes = TESSERA_TRY(op::complete_attributes(card, call.attrs));
    const op::CallInfo info(card, types, attributes);
    op::GradientCall gradient(builder_, info, inputs, results, gradients);
    const Values of_inputs = card.gradient(gradient);
    for (std::size_t i = 0; i < of_inputs.size() && i < call.args.size(); ++i)
      if (const auto* var = ir::as<ir::Var>(call.args[i])) accumulate(*var, of_inputs[i]);
    return builder_.status();
  }

  Value operand(const ir::Expr& expr) {
    if (const auto* var = ir::as<ir::Var>(expr))
      if (const Known* known = known_.find(*var)) return known->value;
    return builder_.import(ir::ExprRef(&expr), op::operand_type(expr).value_or(op::ValueType{}));
  }

  Result<ir::FunctionRef> finish(std::span<const std::size_t> wrt) {
    Values out;
    for (std::size_t i : wrt) {
      const Known& known = known_[*function_.params[i]];
      out.push_back(known.gradient ? known.gradient : op::zeros_like(known.value));
    }
    return builder_.function(cat(function_.name, "_vjp"), out);
  }

  const ir::Function& function_;
  op::IrBuilder builder_;
  ir::NodeTable<Known> known_;
};

}  // namespace

Result<ir::FunctionRef> tessera::autodiff::vjp(const ir::FunctionRef& function,
                                               std::span<const std::size_t> wrt) {
  for (std::size_t i : wrt)
    if (i >= function->params.size())
      return Error(ErrorCode::invalid_argument,
                   cat("there is no parameter ", i, ": the function has ", function->params.size()));
  return Reverse(function).vjp(wrt);
}

std::vector<std::size_t> tessera::autodiff::float_parameters(const ir::Function& function) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < function.params.size(); ++i)
    if (is_float_value(*function.params[i]->type)) out.push_back(i);
  return out;
}
