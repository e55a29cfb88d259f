#include "tessera/plan/size_conditions.h"

#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/op/catalogue.h"
#include "tessera/op/ir_builder.h"

using namespace tessera;
using namespace tessera::plan;

namespace {

void add_condition(Plan& plan, const op::Dim& a, const op::Dim& b) {
  if (ir::provably_equal(a, b)) return;
  const bool is_known = std::any_of(plan.equal_sizes.begin(), plan.equal_sizes.end(),
                                    [&](const auto& pair) { return pair.first == a && pair.second == b; });
  if (!is_known) plan.equal_sizes.emplace_back(a, b);
}

/// Of one call whose results are to have these types.
Result<void> add_conditions_of(Plan& plan, const op::Card& card, const op::ValueTypes& inputs,
                               const op::Attributes& attributes, const op::ValueTypes& expected) {
  op::Assumptions assumed;
  const auto results = TESSERA_TRY(op::infer(card, inputs, attributes, &assumed));
  if (results.size() != expected.size())
    return Error(ErrorCode::shape,
                 cat(card.name, ": gives ", results.size(), " results, the plan has ", expected.size()));
  for (std::size_t i = 0; i < results.size(); ++i) {
    const op::ValueType& type = expected[i];
    bool fits = type.dtype == results[i].dtype && type.rank() == results[i].rank();
    for (std::size_t axis = 0; fits && axis < type.rank(); ++axis)
      fits = !ir::provably_different(type.shape[axis], results[i].shape[axis]);
    if (!fits)
      return Error(ErrorCode::shape, cat(card.name, ": its result is ", results[i], ", the plan has ", type));
    for (std::size_t axis = 0; axis < type.rank(); ++axis)
      add_condition(plan, type.shape[axis], results[i].shape[axis]);
  }
  for (const auto& [a, b] : assumed.equal) add_condition(plan, a, b);
  return {};
}

Result<void> add_conditions_of(Plan& plan, const Step& step) {
  op::ValueTypes inputs, results;
  for (const ValueId input : step.inputs) inputs.push_back(plan.values[input].type);
  for (const ValueId result : step.results) results.push_back(plan.values[result].type);
  return add_conditions_of(plan, *step.card, inputs, step.attributes, results);
}

/// Of an op of a kernel or a library.
Result<void> add_conditions_of(Plan& plan, const ir::Assign& statement) {
  const auto* call = ir::as<ir::Call>(*statement.value);
  const op::Card* card = call == nullptr ? nullptr : op::find_card(call->op);
  if (card == nullptr) return {};
  op::ValueTypes inputs, results;
  for (const ir::ExprRef& argument : call->args)
    if (auto type = op::operand_type(*argument)) inputs.push_back(*std::move(type));
  for (const auto& target : statement.targets)
    if (auto type = op::value_type(*target->type)) results.push_back(*std::move(type));
  const auto attributes = TESSERA_TRY(op::complete_attributes(*card, call->attrs));
  return add_conditions_of(plan, *card, inputs, attributes, results);
}

Result<void> add_conditions_of_step(Plan& plan, const Step& step) {
  if (step.kind == StepKind::call) return add_conditions_of(plan, step);
  if (step.kind != StepKind::kernel && step.kind != StepKind::library) return {};
  for (const auto& statement : step.function->body) TESSERA_TRY(add_conditions_of(plan, *statement));
  return {};
}

}  // namespace

Result<void> plan::add_size_conditions(Plan& plan) {
  for (const Step& step : plan.steps) {
    auto done = add_conditions_of_step(plan, step);
    if (!done) return std::move(done).error().at(step.span.resolve());
  }
  return {};
}
