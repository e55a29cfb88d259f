#include "tessera/autodiff/reverse.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "tessera/autodiff/activity.h"
#include "tessera/autodiff/branch_gradient.h"
#include "tessera/autodiff/inline.h"
#include "tessera/autodiff/loop_gradient.h"
#include "tessera/autodiff/simplify.h"
#include "tessera/base/text.h"
#include "tessera/ir/describe.h"
#include "tessera/ir/seal.h"
#include "tessera/ir/uses.h"
#include "tessera/op/catalogue.h"
#include "tessera/op/ir_builder.h"

using namespace tessera;
using namespace tessera::autodiff;
using op::Value;
using op::Values;

namespace {

using Indices = std::vector<std::size_t>;

/// Goes over a function forwards, writing it down, and then backwards, writing its gradient.
class Reverse {
 public:
  Reverse(const ir::FunctionRef& function, const Rules& rules)
      : rules_(rules),
        flat_(flattened(function, [&](const ir::Function& f) { return rules.is_opaque(f); })),
        function_(*flat_) {}

  Result<ir::FunctionRef> run(std::span<const std::size_t> wrt, std::span<const std::size_t> seeds) {
    const ir::FunctionRef out = TESSERA_TRY(write(wrt, seeds));
    return simplified(out, builder_.is_merged() ? Repetition::none : Repetition::possible);
  }

  Result<Halves> run_in_halves(std::span<const std::size_t> wrt, std::span<const std::size_t> seeds) {
    const ir::FunctionRef whole = TESSERA_TRY(write(wrt, seeds));
    return cut_in_halves(*whole, function_, forward_count_);
  }

 private:
  Result<ir::FunctionRef> write(std::span<const std::size_t> wrt, std::span<const std::size_t> seeds) {
    for (const auto& dim : function_.dims) builder_.adopt_size(dim);
    for (const auto& param : function_.params) TESSERA_TRY(parameter(*param));
    for (std::size_t i : wrt) activity_.set(*function_.params[i], true);
    for (const auto& statement : function_.body) activity_.follow(*statement);
    find_wanted(seeds);
    for (const auto& statement : function_.body) TESSERA_TRY(forward(statement));
    forward_count_ = builder_.statements().size();
    for (std::size_t i : seeds) seed(*function_.results[i]);
    for (std::size_t i = function_.body.size(); i-- > 0;) {
      auto done = backward(*function_.body[i]);
      if (!done) return std::move(done).error().at(function_.body[i]->span().resolve());
    }
    return finish(wrt);
  }

  /// What is known of a variable of the function.
  struct Known {
    Value value;
    Value gradient;
  };

  Result<void> parameter(const ir::Var& var) {
    const auto type = op::value_type(*var.type);
    if (!type) return Error(ErrorCode::unsupported, cat("parameter '", ir::describe(var), "' is a tuple"));
    known_[var] = {builder_.adopt_parameter(Ref<ir::Var>(&var), *type), Value()};
    return {};
  }

  // ---- what has to be kept

  /// The active variables that a gradient can reach from the seeds. Only loops that give such a one keep
  /// anything.
  void find_wanted(std::span<const std::size_t> seeds) {
    const auto want = [&](const ir::Var& var) {
      if (activity_.of(var)) wanted_[var] = true;
    };
    for (std::size_t i : seeds) for_each_use(*function_.results[i], want);
    for (std::size_t i = function_.body.size(); i-- > 0;)
      if (is_wanted(*function_.body[i])) for_each_use(*function_.body[i]->value, want);
  }

  bool is_wanted(const ir::Assign& statement) {
    return std::any_of(statement.targets.begin(), statement.targets.end(),
                       [&](const auto& target) { return wanted_.find(*target) != nullptr; });
  }

  // ---- forwards

  Result<void> forward(const Ref<ir::Assign>& statement) {
    const ir::NodeKind kind = statement->value->kind();
    const bool is_loop = kind == ir::NodeKind::for_region || kind == ir::NodeKind::while_region;
    const bool is_branch = kind == ir::NodeKind::if_region || kind == ir::NodeKind::switch_region;
    if (is_branch && is_wanted(*statement)) {
      const auto [branch, added] =
          branches_.try_emplace(statement.get(), BranchGradient(builder_, *statement, rules_));
      TESSERA_TRY(branch->second.forward(activity_));
    } else if (is_loop && is_wanted(*statement)) {
      const auto [loop, added] =
          loops_.try_emplace(statement.get(), LoopGradient(builder_, *statement, rules_));
      TESSERA_TRY(loop->second.forward(activity_));
    } else {
      builder_.adopt(statement);
    }
    for (const auto& target : statement->targets)
      if (const auto type = op::value_type(*target->type))
        known_[*target] = {builder_.import(target, *type), Value()};
    remember(*statement);
    return {};
  }

  /// What the gradient would write once more is found here.
  void remember(const ir::Assign& statement) {
    const auto* call = ir::as<ir::Call>(*statement.value);
    const op::Card* card = call == nullptr ? nullptr : op::find_card(call->op);
    const Known* target =
        card == nullptr || statement.targets.size() != 1 ? nullptr : known_.find(*statement.targets[0]);
    if (target == nullptr) return;
    SmallVector<Value, 4> inputs;
    for (const auto& arg : call->args) inputs.push_back(operand(*arg));
    builder_.remember(*card, inputs, call->attrs, target->value);
  }

  /// One more parameter, for the gradient of a result.
  void seed(const ir::Expr& result) {
    const auto type = op::operand_type(result).value_or(op::ValueType{});
    accumulate(result, builder_.parameter(cat("d", seed_count_++), type));
  }

  // ---- backwards

  void accumulate(const ir::Expr& operand, Value gradient) {
    const auto* var = ir::as<ir::Var>(operand);
    if (var == nullptr || !gradient || !activity_.of(*var)) return;
    Known& known = known_[*var];
    known.gradient = known.gradient ? builder_.add_gradients(known.gradient, gradient) : gradient;
  }

  Result<void> backward(const ir::Assign& statement) {
    SmallVector<Value, 2> gradients;
    bool any = false;
    for (const auto& target : statement.targets) {
      const Known* known = known_.find(*target);
      gradients.push_back(known == nullptr ? Value() : known->gradient);
      any = any || gradients.back();
    }
    if (!any) return {};
    switch (statement.value->kind()) {
      case ir::NodeKind::call:
        return call(static_cast<const ir::Call&>(*statement.value), statement, gradients);
      case ir::NodeKind::invoke:
        return invoke(static_cast<const ir::Invoke&>(*statement.value), statement, gradients);
      case ir::NodeKind::if_region:
      case ir::NodeKind::switch_region:
        return branch(statement, gradients);
      case ir::NodeKind::for_region:
      case ir::NodeKind::while_region:
        return loop(statement, gradients);
      default:
        return Error(ErrorCode::unsupported,
                     cat("the gradient of '", ir::describe(*statement.targets[0]),
                         "', a scalar expression, was asked for: only tensors have gradients"));
    }
  }

  Result<void> call(const ir::Call& call, const ir::Assign& statement, std::span<const Value> gradients) {
    const op::Card* card = op::find_card(call.op);
    if (card == nullptr) return Error(ErrorCode::not_found, cat("there is no op '", printable(call.op), "'"));
    if (card->gradient == nullptr)
      return card->no_gradient.empty()
                 ? Result<void>(Error(ErrorCode::unsupported, cat("op '", card->name, "' has no gradient")))
                 : Result<void>();
    SmallVector<Value, 4> inputs, results;
    SmallVector<op::ValueType, 4> types;
    for (const auto& arg : call.args) {
      if (ir::is<ir::ScalarOp>(arg) && activity_.of(*arg)) return scalar_gradient(*card);
      inputs.push_back(operand(*arg));
      types.push_back(inputs.back().type());
    }
    for (const auto& target : statement.targets) results.push_back(known_[*target].value);
    op::Attributes completed;
    const bool is_complete = call.attrs.size() == card->attributes.size();  // as builders write them
    if (!is_complete) completed = TESSERA_TRY(op::complete_attributes(*card, call.attrs));
    const op::CallInfo info(*card, types, is_complete ? call.attrs : completed);
    op::GradientCall gradient(builder_, info, inputs, results, gradients);
    const Values of_inputs = card->gradient(gradient);
    for (std::size_t i = 0; i < of_inputs.size() && i < call.args.size(); ++i)
      accumulate(*call.args[i], of_inputs[i]);
    return builder_.status();
  }

  static Error scalar_gradient(const op::Card& card) {
    return Error(ErrorCode::unsupported,
                 cat(card.name,
                     ": an argument is a scalar expression of a value whose gradient is asked "
                     "for: only tensors have gradients"));
  }

  Value operand(const ir::Expr& expr) {
    if (const auto* var = ir::as<ir::Var>(expr))
      if (const Known* known = known_.find(*var)) return known->value;
    if (const auto* number = ir::as<ir::FloatConst>(expr))
      return builder_.constant(number->value, number->dtype);
    return builder_.import(ir::ExprRef(&expr), op::operand_type(expr).value_or(op::ValueType{}));
  }

  // ---- regions

  Result<void> loop(const ir::Assign& statement, std::span<const Value> gradients) {
    LoopGradient& loop = loops_.at(&statement);
    const Values out = TESSERA_TRY(loop.backward(gradients));
    std::size_t next = 0;
    const auto add = [&](const auto& region) {
      for (const auto& init : region.inits) accumulate(*init, out[next++]);
      for (const auto& capture : region.captures) accumulate(*capture, out[next++]);
    };
    if (const auto* region = ir::as<ir::ForRegion>(*statement.value)) add(*region);
    if (const auto* region = ir::as<ir::WhileRegion>(*statement.value)) add(*region);
    return builder_.status();
  }

  Result<void> branch(const ir::Assign& statement, std::span<const Value> gradients) {
    const Values out = TESSERA_TRY(branches_.at(&statement).backward(gradients));
    const auto add = [&](const auto& region) {
      for (std::size_t i = 0; i < out.size(); ++i) accumulate(*region.captures[i], out[i]);
    };
    if (const auto* region = ir::as<ir::IfRegion>(*statement.value)) add(*region);
    if (const auto* region = ir::as<ir::SwitchRegion>(*statement.value)) add(*region);
    return builder_.status();
  }

  /// Appends a call that gives the gradients of the operands `wrt`.
  Result<void> hand_out(ir::ExprRef value, const std::vector<ir::ExprRef>& operands, const Indices& wrt) {
    op::ValueTypes types;
    for (std::size_t i : wrt) types.push_back(op::operand_type(*operands[i]).value_or(op::ValueType{}));
    if (wrt.empty()) return {};
    const Values gradients = builder_.append(std::move(value), types);
    for (std::size_t k = 0; k < wrt.size(); ++k) accumulate(*operands[wrt[k]], gradients[k]);
    return builder_.status();
  }

  // ---- calls of functions that rules are about

  Result<void> invoke(const ir::Invoke& invoke, const ir::Assign& statement, std::span<const Value> given) {
    const Rules::Gradient* rule = rules_.find_gradient(*invoke.callee);
    if (rule == nullptr) return recompute(invoke, given);
    Values gradients(given.begin(), given.end());
    for (std::size_t i = 0; i < gradients.size(); ++i)
      if (!gradients[i] && is_float_value(*statement.targets[i]->type))
        gradients[i] = op::zeros_like(known_[*statement.targets[i]].value);
    return apply(*rule, invoke, gradients);
  }

  Result<void> recompute(const ir::Invoke& invoke, std::span<const Value> gradients) {
    auto draft = std::make_unique<ir::Invoke>(invoke);
    Indices wrt, seeds;
    for (std::size_t i = 0; i < invoke.args.size(); ++i)
      if (activity_.of(*invoke.args[i])) wrt.push_back(i);
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (!gradients[i]) continue;
      seeds.push_back(i);
      draft->args.push_back(builder_.expr(gradients[i]));
    }
    // All calls that ask for the same gradients share one function.
    ir::FunctionRef& gradient = recomputing_[{invoke.callee.get(), wrt, seeds}];
    if (gradient == nullptr) gradient = TESSERA_TRY(reverse(invoke.callee, wrt, seeds, rules_));
    draft->callee = gradient;
    return hand_out(ir::seal(std::move(draft)), invoke.args, wrt);
  }

  Result<void> apply(const Rules::Gradient& rule, const ir::Invoke& invoke,
                     std::span<const Value> gradients) {
    auto draft = std::make_unique<ir::Invoke>(invoke);
    const ir::Function& function = *rule.function;
    draft->callee = rule.function;
    for (Value gradient : gradients)
      if (gradient) draft->args.push_back(builder_.expr(gradient));
    if (function.params.size() != draft->args.size() || function.results.size() != rule.wrt.size())
      return Error(ErrorCode::invalid_argument,
                   cat("the gradient of function '", printable(invoke.callee->name), "' takes ",
                       function.params.size(), " values and gives ", function.results.size(), ", expected ",
                       draft->args.size(), " and ", rule.wrt.size()));
    return hand_out(ir::seal(std::move(draft)), invoke.args, rule.wrt);
  }

  // ---- the end

  Result<ir::FunctionRef> finish(std::span<const std::size_t> wrt) {
    Values out;
    for (std::size_t i : wrt) {
      const Known& known = known_[*function_.params[i]];
      out.push_back(as_tensor(known.gradient ? op::reshape(known.gradient, known.value.shape())
                                             : op::full(builder_, 0, known.value.type())));
    }
    return builder_.function(cat(function_.name, "_vjp"), out);
  }

  /// A constant is a scalar; the bodies of a region must agree in the types of their results.
  Value as_tensor(Value value) {
    return !value || ir::is<ir::Var>(builder_.expr(value)) ? value : op::unary("identity", value);
  }

  const Rules& rules_;
  ir::FunctionRef flat_;
  const ir::Function& function_;
  op::IrBuilder builder_{op::EqualCalls::merge};
  Activity activity_;
  ir::NodeTable<Known> known_;
  ir::NodeTable<bool> wanted_;
  std::unordered_map<const ir::Assign*, LoopGradient> loops_;
  std::unordered_map<const ir::Assign*, BranchGradient> branches_;
  std::map<std::tuple<const ir::Function*, Indices, Indices>, ir::FunctionRef> recomputing_;
  std::size_t seed_count_ = 0;
  std::size_t forward_count_ = 0;  ///< the statements that were written before the gradient's
};

}  // namespace

Result<ir::FunctionRef> tessera::autodiff::reverse(const ir::FunctionRef& function,
                                                   std::span<const std::size_t> wrt,
                                                   std::span<const std::size_t> seeds, const Rules& rules) {
  return Reverse(function, rules).run(wrt, seeds);
}

Result<Halves> tessera::autodiff::reverse_in_halves(const ir::FunctionRef& function,
                                                    std::span<const std::size_t> wrt,
                                                    std::span<const std::size_t> seeds, const Rules& rules) {
  return Reverse(function, rules).run_in_halves(wrt, seeds);
}
