#include "tessera/model/planned_model.h"

#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/compile/package.h"
#include "tessera/compile/plan_program.h"
#include "tessera/plan/work.h"

using namespace tessera;

namespace {

/// Of one constant that is folded, though it is larger than what it is made of.
constexpr std::int64_t most_folded_bytes = std::int64_t{1} << 24;

Result<void> check_steps(const plan::Program& program) {
  for (const plan::Part& part : program.parts)
    for (const plan::Step& step : part.plan->steps)
      if (!plan::has_known_work(*part.plan, step))
        return Error(ErrorCode::unsupported, cat("a plan does not bound the work of '", step.name(), "'"));
  return {};
}

}  // namespace

Result<PlannedModel> PlannedModel::create(const onnx::Model& model, runtime::Device& device,
                                          const onnx::Limits& limits) {
  const ir::FunctionRef function = TESSERA_TRY(onnx::import_function(model, limits));
  // What is made of weights of 8 bits is computed once.
  compiler::PlanOptions options;
  options.pipeline.passes.fold_bytes = most_folded_bytes;
  auto planned = TESSERA_TRY(compiler::plan_program(function, device.target(), options));
  TESSERA_TRY(check_steps(planned.program));
  PlannedModel out(TESSERA_TRY(engine::PlanRunner::create(
      compiler::package(*function, std::move(planned.program), std::string(device.name())), device,
      {.bytes = limits.total_bytes, .work = static_cast<double>(limits.work)})));
  for (const onnx::ValueInfo* input : onnx::required_inputs(model)) out.inputs_.push_back(*input);
  out.file_ = model.file;
  return out;
}

Result<std::vector<onnx::DataValue>> PlannedModel::run(std::span<const onnx::DataValue> inputs) {
  if (inputs.size() != inputs_.size())
    return Error(ErrorCode::invalid_argument,
                 cat("the model takes ", inputs_.size(), " inputs, got ", inputs.size()), {file_, 0, 0});
  std::vector<op::HostTensor> tensors;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].kind != onnx::DataValue::Kind::tensor)
      return Error(ErrorCode::unsupported, cat("input ", onnx::shown(inputs_[i].name), " is no tensor"),
                   {file_, 0, 0});
    tensors.push_back(inputs[i].tensors[0]);
    auto fits = onnx::check_input(inputs_[i], tensors.back().dtype(), tensors.back().shape());
    if (!fits) return std::move(fits).error().at({file_, 0, 0});
  }
  std::vector<onnx::DataValue> out;
  for (op::HostTensor& result : TESSERA_TRY(runner_.run(tensors)))
    out.push_back({onnx::DataValue::Kind::tensor, {std::move(result)}});
  return out;
}
