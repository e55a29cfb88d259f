#include "tessera/plan/work.h"

#include "tessera/op/catalogue.h"
#include "tessera/op/ir_builder.h"
#include "tessera/op/work.h"
#include "tessera/plan/binding.h"

using namespace tessera;
using namespace tessera::plan;

namespace {

class WorkEstimate {
 public:
  WorkEstimate(const Plan& plan, std::span<const std::int64_t> sizes) : plan_(plan), sizes_(sizes) {}

  Result<double> of(const Step& step) const {
    if (step.kind == StepKind::call) return of_call(step);
    double out = 0;
    if (step.kind == StepKind::kernel || step.kind == StepKind::library)
      for (const auto& statement : step.function->body) out += TESSERA_TRY(of_statement(*statement));
    return out;
  }

 private:
  /// The type with numbers for its sizes.
  Result<op::ValueType> sized(const op::ValueType& type) const {
    op::ValueType out{type.dtype, {}};
    for (const op::Dim& dim : type.shape) out.shape.push_back(TESSERA_TRY(size_of(plan_.dims, sizes_, dim)));
    return out;
  }

  Result<double> of_call(const Step& step) const {
    op::ValueTypes inputs, results;
    for (const ValueId v : step.inputs) inputs.push_back(TESSERA_TRY(sized(plan_.values[v].type)));
    for (const ValueId v : step.results) results.push_back(TESSERA_TRY(sized(plan_.values[v].type)));
    return op::work_of({*step.card, inputs, step.attributes}, results);
  }

  Result<double> of_statement(const ir::Assign& statement) const {
    const auto* call = ir::as<ir::Call>(statement.value);
    const op::Card* card = call == nullptr ? nullptr : op::find_card(call->op);
    if (card == nullptr) return 0.0;
    op::ValueTypes inputs, results;
    for (const ir::ExprRef& arg : call->args) {
      const auto* var = ir::as<ir::Var>(*arg);
      const auto type = var == nullptr ? std::nullopt : op::value_type(*var->type);
      inputs.push_back(type ? TESSERA_TRY(sized(*type)) : op::ValueType{});
    }
    for (const auto& target : statement.targets)
      results.push_back(TESSERA_TRY(sized(*op::value_type(*target->type))));
    const auto attributes = TESSERA_TRY(op::complete_attributes(*card, call->attrs));
    return op::work_of({*card, inputs, attributes}, results);
  }

  const Plan& plan_;
  std::span<const std::int64_t> sizes_;
};

}  // namespace

Result<std::vector<double>> plan::work_by_step(const Plan& plan, std::span<const std::int64_t> sizes) {
  const WorkEstimate estimate(plan, sizes);
  std::vector<double> out;
  for (const Step& step : plan.steps) out.push_back(TESSERA_TRY(estimate.of(step)));
  return out;
}
