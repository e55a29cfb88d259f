#include "tessera/plan/work.h"

#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/op/catalogue.h"
#include "tessera/op/ir_builder.h"
#include "tessera/op/work.h"
#include "tessera/plan/known_sizes.h"

using namespace tessera;
using namespace tessera::plan;

namespace {

/// Regions inside of each other that are looked into.
constexpr int most_nesting = 400;

Result<double> work_of_call(const ir::Call& call, const ir::Assign& statement, const KnownSizes& sizes) {
  const op::Card* card = op::find_card(call.op);
  if (card == nullptr) return 0.0;
  op::ValueTypes inputs, results;
  for (const ir::ExprRef& arg : call.args) {
    const auto type = op::operand_type(*arg);
    if (!type) return Error(ErrorCode::unsupported, cat("an operand of '", call.op, "' has no type"));
    inputs.push_back(TESSERA_TRY(sizes.of_any(*type)));
  }
  for (const auto& target : statement.targets)
    results.push_back(TESSERA_TRY(sizes.of_any(*op::value_type(*target->type))));
  const auto attributes = TESSERA_TRY(op::complete_attributes(*card, call.attrs));
  return op::work_of({*card, inputs, attributes}, results);
}

Result<double> work_of_function(const ir::Function& function, const KnownSizes& sizes, int depth);

/// That of the body which takes most.
Result<double> work_of_bodies(std::span<const ir::FunctionRef> bodies, std::span<const ir::ExprRef> dims,
                              const KnownSizes& sizes, int depth) {
  std::vector<std::int64_t> numbers;
  for (const ir::ExprRef& dim : dims) numbers.push_back(TESSERA_TRY(sizes.of(op::Dim(dim))));
  double most = 0;
  for (const ir::FunctionRef& body : bodies)
    most = std::max(most, TESSERA_TRY(work_of_function(*body, {body->dims, numbers}, depth + 1)));
  return most;
}

Result<double> work_of_statement(const ir::Assign& statement, const KnownSizes& sizes, int depth) {
  const ir::Expr& value = *statement.value;
  if (const auto* call = ir::as<ir::Call>(value)) return work_of_call(*call, statement, sizes);
  if (const auto* branch = ir::as<ir::IfRegion>(value)) {
    const ir::FunctionRef bodies[] = {branch->then_body, branch->else_body};
    return work_of_bodies(bodies, branch->dims, sizes, depth);
  }
  if (const auto* branch = ir::as<ir::SwitchRegion>(value))
    return work_of_bodies(branch->bodies, branch->dims, sizes, depth);
  if (const auto* invoke = ir::as<ir::Invoke>(value))
    return work_of_bodies({&invoke->callee, 1}, invoke->dims, sizes, depth);
  if (const auto* loop = ir::as<ir::ForRegion>(value)) {
    const auto count = static_cast<double>(TESSERA_TRY(sizes.of(op::Dim(loop->count))));
    const double once = TESSERA_TRY(work_of_bodies({&loop->body, 1}, loop->dims, sizes, depth));
    return std::max(count, 0.0) * once;
  }
  if (ir::is<ir::WhileRegion>(value)) return Error(ErrorCode::unsupported, "a loop that its data end");
  return 0.0;
}

Result<double> work_of_function(const ir::Function& function, const KnownSizes& sizes, int depth) {
  if (depth > most_nesting)
    return Error(ErrorCode::limit, cat("regions nested deeper than ", most_nesting, " levels"));
  double out = 0;
  for (const auto& statement : function.body) out += TESSERA_TRY(work_of_statement(*statement, sizes, depth));
  return out;
}

Result<double> work_of_step(const Plan& plan, const Step& step, const KnownSizes& sizes) {
  if (step.kind == StepKind::copy) return 0.0;
  if (step.kind != StepKind::call) return work_of_function(*step.function, sizes, 0);
  op::ValueTypes inputs, results;
  for (const ValueId v : step.inputs) inputs.push_back(TESSERA_TRY(sizes.of_any(plan.values[v].type)));
  for (const ValueId v : step.results) results.push_back(TESSERA_TRY(sizes.of_any(plan.values[v].type)));
  return op::work_of({*step.card, inputs, step.attributes}, results);
}

}  // namespace

Result<std::vector<double>> plan::work_by_step(const Plan& plan, std::span<const std::int64_t> sizes) {
  const KnownSizes known{plan.dims, sizes};
  std::vector<double> out;
  for (const Step& step : plan.steps) {
    const auto work = work_of_step(plan, step, known);
    if (!work && step.kind != StepKind::function) return work.error();
    out.push_back(work ? *work : 0);
  }
  return out;
}

bool plan::has_known_work(const Plan& plan, const Step& step) {
  if (step.kind != StepKind::function) return true;
  const std::vector<std::int64_t> any(plan.dims.size(), 1);
  return work_of_step(plan, step, {plan.dims, any}).ok();
}

bool plan::has_known_work(const ir::Function& function) {
  const std::vector<std::int64_t> any(function.dims.size(), 1);
  return work_of_function(function, {function.dims, any}, 0).ok();
}
