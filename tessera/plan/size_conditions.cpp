#include "tessera/plan/size_conditions.h"

#include <algorithm>

#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::plan;

namespace {

void add_condition(Plan& plan, const op::Dim& a, const op::Dim& b) {
  if (ir::provably_equal(a, b)) return;
  const bool is_known = std::any_of(plan.equal_sizes.begin(), plan.equal_sizes.end(),
                                    [&](const auto& pair) { return pair.first == a && pair.second == b; });
  if (!is_known) plan.equal_sizes.emplace_back(a, b);
}

Result<void> add_conditions_of(Plan& plan, const Step& step) {
  op::ValueTypes inputs;
  for (const ValueId input : step.inputs) inputs.push_back(plan.values[input].type);
  op::Assumptions assumed;
  const auto results = TESSERA_TRY(op::infer(*step.card, inputs, step.attributes, &assumed));
  if (results.size() != step.results.size())
    return Error(ErrorCode::shape, cat(step.name(), ": gives ", results.size(), " results, the plan has ",
                                       step.results.size()));
  for (std::size_t i = 0; i < results.size(); ++i) {
    const op::ValueType& type = plan.values[step.results[i]].type;
    bool fits = type.dtype == results[i].dtype && type.rank() == results[i].rank();
    for (std::size_t axis = 0; fits && axis < type.rank(); ++axis)
      fits = !ir::provably_different(type.shape[axis], results[i].shape[axis]);
    if (!fits)
      return Error(ErrorCode::shape,
                   cat(step.name(), ": its result is ", results[i], ", the plan has ", type));
    for (std::size_t axis = 0; axis < type.rank(); ++axis)
      add_condition(plan, type.shape[axis], results[i].shape[axis]);
  }
  for (const auto& [a, b] : assumed.equal) add_condition(plan, a, b);
  return {};
}

}  // namespace

Result<void> plan::add_size_conditions(Plan& plan) {
  for (const Step& step : plan.steps) {
    if (step.kind != StepKind::call) continue;
    auto done = add_conditions_of(plan, step);
    if (!done) return std::move(done).error().at(step.span.resolve());
  }
  return {};
}
