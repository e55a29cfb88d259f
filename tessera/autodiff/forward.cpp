#include "tessera/autodiff/forward.h"

#include <algorithm>

#include "tessera/autodiff/activity.h"
#include "tessera/autodiff/inline.h"
#include "tessera/autodiff/reverse.h"
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

/// Goes over a function, writing it down with the tangent of each value behind it.
class Forward {
 public:
  Forward(const ir::FunctionRef& function, const Rules& rules)
      : rules_(rules),
        flat_(flattened(function, [&](const ir::Function& f) { return rules.find_gradient(f) != nullptr; })),
        function_(*flat_) {}

  Result<ir::FunctionRef> run(std::span<const std::size_t> wrt, std::span<const std::size_t> outs) {
    for (const auto& dim : function_.dims) builder_.adopt_size(dim);
    for (const auto& param : function_.params) TESSERA_TRY(parameter(*param));
    for (std::size_t i : wrt) {
      const ir::Var& param = *function_.params[i];
      set_tangent(param, builder_.parameter(cat("t_", param.name), type_of(param)));
    }
    for (const auto& statement : function_.body) {
      auto done = follow(statement);
      if (!done) return std::move(done).error().at(statement->span().resolve());
    }
    return finish(outs);
  }

 private:
  Result<void> parameter(const ir::Var& var) {
    const auto type = op::value_type(*var.type);
    if (!type) return Error(ErrorCode::unsupported, cat("parameter '", ir::describe(var), "' is a tuple"));
    (void)builder_.adopt_parameter(Ref<ir::Var>(&var), *type);
    return {};
  }

  void set_tangent(const ir::Var& var, Value tangent) {
    if (!tangent || !is_float_value(*var.type)) return;
    tangents_[var] = tangent;
    activity_.set(var, true);
  }

  Value tangent(const ir::Expr& operand) {
    const auto* var = ir::as<ir::Var>(operand);
    const Value* known = var == nullptr ? nullptr : tangents_.find(*var);
    return known == nullptr ? Value() : *known;
  }

  ir::ExprRef tangent_or_zeros(const ir::Expr& operand) {
    const Value known = tangent(operand);
    return builder_.expr(known ? known : op::full(builder_, 0, type_of(operand)));
  }

  Value import(const ir::Expr& operand) { return builder_.import(ir::ExprRef(&operand), type_of(operand)); }

  Result<void> follow(const Ref<ir::Assign>& statement) {
    const ir::Expr& value = *statement->value;
    switch (value.kind()) {
      case ir::NodeKind::call:
        builder_.adopt(statement);
        return call(static_cast<const ir::Call&>(value), *statement);
      case ir::NodeKind::invoke:
        builder_.adopt(statement);
        return invoke(static_cast<const ir::Invoke&>(value), *statement);
      case ir::NodeKind::if_region:
      case ir::NodeKind::switch_region:
        return branches(value, statement);
      case ir::NodeKind::for_region:
      case ir::NodeKind::while_region:
        return loop(value, statement);
      default:
        builder_.adopt(statement);
        // A tuple of tensors was taken apart already; nothing reads it.
        if (!activity_.of(value) || ir::is<ir::Tuple>(value)) return {};
        return Error(ErrorCode::unsupported, cat("the derivative of '", ir::describe(*statement->targets[0]),
                                                 "', a scalar expression, was asked for"));
    }
  }

  // ---- calls: a gradient is linear in the gradients of the results; its transpose takes tangents forwards

  Result<void> call(const ir::Call& call, const ir::Assign& statement) {
    const op::Card* card = op::find_card(call.op);
    if (card == nullptr) return Error(ErrorCode::not_found, cat("there is no op '", printable(call.op), "'"));
    const auto active = activity_.of(call.args);
    if (std::none_of(active.begin(), active.end(), [](bool a) { return a; })) return {};
    if (card->gradient == nullptr && !card->no_gradient.empty()) return {};
    if (card->gradient == nullptr)
      return Error(ErrorCode::unsupported, cat("op '", card->name, "' has no gradient"));
    Values args;
    for (const auto& arg : call.args) {
      if (activity_.of(*arg) && !tangent(*arg))
        return Error(ErrorCode::unsupported,
                     cat(card->name,
                         ": an argument is a scalar expression of a value whose derivative is "
                         "asked for: only tensors have derivatives"));
      args.push_back(import(*arg));
    }
    for (const auto& target : statement.targets) args.push_back(import(*target));
    Indices with_tangent = where_true(active);
    const ir::FunctionRef gradient = TESSERA_TRY(card_gradient(*card, call, statement, with_tangent));
    return transpose(gradient, {}, args, call.args, with_tangent, statement);
  }

  /// The gradient of a call as a function of its arguments, its results and the gradients of its float
  /// results. `wanted` are the arguments whose gradients it gives; those without one are taken out.
  Result<ir::FunctionRef> card_gradient(const op::Card& card, const ir::Call& call,
                                        const ir::Assign& statement, Indices& wanted) {
    op::IrBuilder b;
    Values inputs, results, gradients;
    op::ValueTypes types;
    for (const auto& arg : call.args) {
      types.push_back(type_of(*arg));
      const Value param = b.parameter("x", types.back());
      // Constants are known to the gradient, as they are in a program.
      inputs.push_back(arg->has_variables() ? param : b.import(arg, types.back()));
    }
    for (const auto& target : statement.targets) results.push_back(b.parameter("y", type_of(*target)));
    for (const auto& target : statement.targets)
      gradients.push_back(is_float_value(*target->type) ? b.parameter("d", type_of(*target)) : Value());
    const op::Attributes attributes = TESSERA_TRY(op::complete_attributes(card, call.attrs));
    const op::CallInfo info(card, types, attributes);
    op::GradientCall gradient(b, info, inputs, results, gradients);
    const Values of_inputs = card.gradient(gradient);
    wanted.erase(std::remove_if(wanted.begin(), wanted.end(), [&](std::size_t i) { return !of_inputs[i]; }),
                 wanted.end());
    Values out;
    for (std::size_t i : wanted) out.push_back(of_inputs[i]);
    return b.function("", out);
  }

  Result<void> invoke(const ir::Invoke& invoke, const ir::Assign& statement) {
    const auto active = activity_.of(invoke.args);
    if (std::none_of(active.begin(), active.end(), [](bool a) { return a; })) return {};
    const Rules::Gradient& rule = *rules_.find_gradient(*invoke.callee);
    if (rule.function->results.size() != rule.wrt.size())
      return Error(ErrorCode::invalid_argument,
                   cat("the gradient of function '", printable(invoke.callee->name), "' gives ",
                       rule.function->results.size(), " values, expected ", rule.wrt.size()));
    auto draft = std::make_unique<ir::Function>(*rule.function);
    Indices with_tangent;
    std::vector<ir::ExprRef> gradients;
    Values args;
    for (const auto& arg : invoke.args) args.push_back(import(*arg));
    for (std::size_t k = 0; k < rule.wrt.size(); ++k) {
      if (!active[rule.wrt[k]]) continue;
      with_tangent.push_back(rule.wrt[k]);
      gradients.push_back(draft->results[k]);
    }
    draft->results = std::move(gradients);
    return transpose(ir::seal(std::move(draft)), invoke.dims, args, invoke.args, with_tangent, statement);
  }

  /// Sets the tangents of the targets by the transpose of `gradient`: a function of `args` and of the
  /// gradients of the float targets, that gives the gradients of the operands `wrt`.
  Result<void> transpose(const ir::FunctionRef& gradient, std::span<const ir::ExprRef> dims, Values args,
                         const std::vector<ir::ExprRef>& operands, const Indices& wrt,
                         const ir::Assign& statement) {
    if (wrt.empty()) return {};
    Indices gradient_params, seeds;
    for (std::size_t i = args.size(); i < gradient->params.size(); ++i) gradient_params.push_back(i);
    for (std::size_t k = 0; k < wrt.size(); ++k) seeds.push_back(k);
    const ir::FunctionRef transposed = TESSERA_TRY(reverse(gradient, gradient_params, seeds, rules_));
    const auto used = used_parameters(*transposed);
    // What is linear in the gradients does not depend on where it is taken: at zero, if they are used at all.
    for (const auto& target : statement.targets)
      if (is_float_value(*target->type))
        args.push_back(used[args.size()] ? op::full(builder_, 0, type_of(*target)) : Value());
    for (std::size_t i : wrt) args.push_back(tangent(*operands[i]));
    const Values out = inline_call(builder_, *transposed, dims, args);
    std::size_t next = 0;
    for (const auto& target : statement.targets)
      if (is_float_value(*target->type)) set_tangent(*target, out[next++]);
    return builder_.status();
  }

  // ---- regions

  /// Writes a statement for `value`, which gives the targets and then the tangents of the targets `outs`.
  void write(const Ref<ir::Assign>& statement, ir::ExprRef value, const Indices& outs) {
    std::vector<Ref<ir::Var>> targets = statement->targets;
    for (std::size_t i : outs)
      targets.push_back(
          ir::variable(cat("t_", targets[i]->name), op::ir_type(type_of(*statement->targets[i]))));
    builder_.adopt(ir::assign(targets, std::move(value), statement->span()));
    for (std::size_t k = 0; k < outs.size(); ++k)
      set_tangent(*statement->targets[outs[k]], import(*targets[statement->targets.size() + k]));
  }

  Result<void> branches(const ir::Expr& value, const Ref<ir::Assign>& statement) {
    const Indices outs = where_true(activity_.of_targets(*statement));
    if (outs.empty()) return builder_.adopt(statement), Result<void>();
    if (const auto* region = ir::as<ir::IfRegion>(value)) {
      auto draft = std::make_unique<ir::IfRegion>(*region);
      draft->then_body = TESSERA_TRY(branch(region->then_body, region->captures, outs));
      draft->else_body = TESSERA_TRY(branch(region->else_body, region->captures, outs));
      add_tangents(draft->captures);
      write(statement, ir::seal(std::move(draft)), outs);
    } else {
      auto draft = std::make_unique<ir::SwitchRegion>(static_cast<const ir::SwitchRegion&>(value));
      for (auto& body : draft->bodies) body = TESSERA_TRY(branch(body, draft->captures, outs));
      add_tangents(draft->captures);
      write(statement, ir::seal(std::move(draft)), outs);
    }
    return builder_.status();
  }

  Result<ir::FunctionRef> branch(const ir::FunctionRef& body, const std::vector<ir::ExprRef>& captures,
                                 const Indices& outs) {
    return forward(body, where_true(activity_.of(captures)), outs, rules_);
  }

  void add_tangents(std::vector<ir::ExprRef>& operands) {
    const std::size_t count = operands.size();
    for (std::size_t i = 0; i < count; ++i)
      if (const Value known = tangent(*operands[i])) operands.push_back(builder_.expr(known));
  }

  Result<void> loop(const ir::Expr& value, const Ref<ir::Assign>& statement) {
    if (const auto* region = ir::as<ir::ForRegion>(value)) {
      auto draft = std::make_unique<ir::ForRegion>(*region);
      const Indices outs = TESSERA_TRY(carry_tangents(*draft, 1));
      write(statement, ir::seal(std::move(draft)), outs);
      return builder_.status();
    }
    const auto& region = static_cast<const ir::WhileRegion&>(value);
    auto draft = std::make_unique<ir::WhileRegion>(region);
    const Indices outs = TESSERA_TRY(carry_tangents(*draft, 0));
    // The condition is handed the same values as the body.
    auto condition = std::make_unique<ir::Function>(*region.condition);
    const std::size_t carried = region.inits.size();
    condition->params.assign(draft->body->params.begin(), draft->body->params.end());
    std::copy_n(region.condition->params.begin(), carried, condition->params.begin());
    std::copy_n(region.condition->params.begin() + static_cast<std::ptrdiff_t>(carried),
                region.captures.size(),
                condition->params.begin() + static_cast<std::ptrdiff_t>(draft->inits.size()));
    draft->condition = ir::seal(std::move(condition));
    write(statement, ir::seal(std::move(draft)), outs);
    return builder_.status();
  }

  /// Makes a loop carry the tangents of its active carried values, which are returned.
  template <class Region>
  Result<Indices> carry_tangents(Region& draft, std::size_t lead) {
    const std::size_t carried = draft.inits.size(), captured = draft.captures.size();
    const auto captures = activity_.of(draft.captures);
    const auto active = active_carried(*draft.body, lead, activity_.of(draft.inits), captures);
    const Indices outs = where_true(active);
    Indices wrt = where_true(active, lead);
    for (std::size_t i : where_true(captures, lead + carried)) wrt.push_back(i);
    const ir::FunctionRef body = TESSERA_TRY(forward(draft.body, wrt, outs, rules_));
    // From (carried, captures, tangents of carried, tangents of captures) to the order of a body.
    auto ordered = std::make_unique<ir::Function>(*body);
    const auto begin = ordered->params.begin() + static_cast<std::ptrdiff_t>(lead + carried);
    std::rotate(begin, begin + static_cast<std::ptrdiff_t>(captured),
                begin + static_cast<std::ptrdiff_t>(captured + outs.size()));
    draft.body = ir::seal(std::move(ordered));
    for (std::size_t i : outs) draft.inits.push_back(tangent_or_zeros(*draft.inits[i]));
    add_tangents(draft.captures);
    return outs;
  }

  // ---- the end

  Result<ir::FunctionRef> finish(std::span<const std::size_t> outs) {
    Values out;
    for (const auto& result : function_.results) out.push_back(import(*result));
    for (std::size_t i : outs) {
      const ir::Expr& result = *function_.results[i];
      const Value known = tangent(result);
      out.push_back(known ? op::reshape(known, type_of(result).shape)
                          : op::full(builder_, 0, type_of(result)));
    }
    return simplified(TESSERA_TRY(builder_.function(cat(function_.name, "_jvp"), out)));
  }

  const Rules& rules_;
  ir::FunctionRef flat_;
  const ir::Function& function_;
  op::IrBuilder builder_;
  Activity activity_;
  ir::NodeTable<Value> tangents_;
};

}  // namespace

Result<ir::FunctionRef> tessera::autodiff::forward(const ir::FunctionRef& function,
                                                   std::span<const std::size_t> wrt,
                                                   std::span<const std::size_t> outs, const Rules& rules) {
  return Forward(function, rules).run(wrt, outs);
}
