#include "tessera/autodiff/activity.h"

#include <algorithm>

#include "tessera/ir/uses.h"
#include "tessera/op/catalogue.h"
#include "tessera/op/ir_builder.h"

using namespace tessera;
using namespace tessera::autodiff;

namespace {

/// An op that nobody knows may have a gradient.
bool passes_gradient(const ir::Call& call) {
  const op::Card* card = op::find_card(call.op);
  return card == nullptr || card->no_gradient.empty();
}

std::vector<bool> either(std::vector<bool> a, const std::vector<bool>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = a[i] || b[i];
  return a;
}

}  // namespace

bool tessera::autodiff::is_float_value(const ir::Type& type) {
  if (const auto* tensor = ir::as<ir::TensorType>(type)) return ir::is_float(tensor->dtype);
  const auto* scalar = ir::as<ir::ScalarType>(type);
  return scalar != nullptr && ir::is_float(scalar->dtype);
}

op::ValueType tessera::autodiff::type_of(const ir::Expr& operand) {
  return op::operand_type(operand).value_or(op::ValueType{});
}

std::vector<std::size_t> tessera::autodiff::where_true(const std::vector<bool>& flags, std::size_t offset) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < flags.size(); ++i)
    if (flags[i]) out.push_back(offset + i);
  return out;
}

bool Activity::of(const ir::Expr& operand) {
  if (!operand.has_variables()) return false;
  if (const auto* var = ir::as<ir::Var>(operand)) {
    const bool* known = active_.find(*var);
    return known != nullptr && *known;
  }
  bool out = false;
  for_each_use(operand, [&](const ir::Var& var) { out = out || of(var); });
  return out;
}

std::vector<bool> Activity::of(const std::vector<ir::ExprRef>& operands) {
  std::vector<bool> out;
  for (const auto& operand : operands) out.push_back(of(*operand));
  return out;
}

bool Activity::any(const std::vector<ir::ExprRef>& operands) {
  return std::any_of(operands.begin(), operands.end(), [&](const auto& one) { return of(*one); });
}

std::vector<bool> Activity::of_targets(const ir::Assign& statement) {
  std::vector<bool> out = results(*statement.value, statement.targets.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    const ir::Type& type = *statement.targets[i]->type;
    out[i] = out[i] && (is_float_value(type) || ir::is<ir::TupleType>(type));
  }
  return out;
}

void Activity::follow(const ir::Assign& statement) {
  // Nearly every statement: a call with one result.
  if (const auto* call = ir::as<ir::Call>(statement.value);
      call != nullptr && statement.targets.size() == 1) {
    const ir::Var& target = *statement.targets[0];
    return set(target, any(call->args) && is_float_value(*target.type) && passes_gradient(*call));
  }
  const std::vector<bool> active = of_targets(statement);
  for (std::size_t i = 0; i < active.size(); ++i) set(*statement.targets[i], active[i]);
}

std::vector<bool> Activity::results(const ir::Expr& value, std::size_t count) {
  if (const auto* call = ir::as<ir::Call>(value)) {
    return std::vector<bool>(count, any(call->args) && passes_gradient(*call));
  }
  if (const auto* invoke = ir::as<ir::Invoke>(value)) return std::vector<bool>(count, any(invoke->args));
  if (const auto* tuple = ir::as<ir::Tuple>(value)) return {any(tuple->elements)};
  if (const auto* item = ir::as<ir::Item>(value)) return {of(*item->tuple)};
  if (const auto* region = ir::as<ir::IfRegion>(value)) {
    const auto captures = of(region->captures);
    return either(active_results(*region->then_body, captures), active_results(*region->else_body, captures));
  }
  if (const auto* region = ir::as<ir::SwitchRegion>(value)) {
    std::vector<bool> out(count, false);
    for (const auto& body : region->bodies)
      out = either(std::move(out), active_results(*body, of(region->captures)));
    return out;
  }
  if (const auto* region = ir::as<ir::ForRegion>(value))
    return active_carried(*region->body, 1, of(region->inits), of(region->captures));
  if (const auto* region = ir::as<ir::WhileRegion>(value))
    return active_carried(*region->body, 0, of(region->inits), of(region->captures));
  return {of(value)};
}

std::vector<bool> tessera::autodiff::active_results(const ir::Function& function,
                                                    const std::vector<bool>& active_parameters) {
  Activity activity;
  for (std::size_t i = 0; i < function.params.size(); ++i)
    activity.set(*function.params[i], active_parameters[i]);
  for (const auto& statement : function.body) activity.follow(*statement);
  return activity.of(function.results);
}

std::vector<bool> tessera::autodiff::active_carried(const ir::Function& body, std::size_t lead,
                                                    std::vector<bool> inits,
                                                    const std::vector<bool>& captures) {
  while (true) {
    std::vector<bool> params(lead, false);
    params.insert(params.end(), inits.begin(), inits.end());
    params.insert(params.end(), captures.begin(), captures.end());
    std::vector<bool> after = either(active_results(body, params), inits);
    if (after == inits) return inits;
    inits = std::move(after);
  }
}
