#include "tessera/model/planned_model.h"

#include <utility>

#include "tessera/base/text.h"
#include "tessera/compile/plan_program.h"
#include "tessera/model/model_package.h"
#include "tessera/plan/work.h"

using namespace tessera;
using op::HostTensor;

namespace {

Result<void> check_steps(const plan::Program& program) {
  for (const plan::Part& part : program.parts)
    for (const plan::Step& step : part.plan->steps)
      if (!plan::has_known_work(*part.plan, step))
        return Error(ErrorCode::unsupported, cat("a plan does not bound the work of '", step.name(), "'"));
  return {};
}

Result<plan::Program> planned(const ir::FunctionRef& function, runtime::Device& device) {
  compiler::PlanOptions options;
  options.pipeline.passes.fold_weights();
  const auto begun = device.expect(*function);
  auto program = TESSERA_TRY(compiler::plan_program(function, device.target(), options)).program;
  TESSERA_TRY(check_steps(program));
  return program;
}

Result<engine::PlanRunner> runner_of(const onnx::Model& model, onnx::Variants variants,
                                     runtime::Device& device, const onnx::Limits& limits) {
  auto names = package_options(model, variants.flags);
  plan::Package package;
  package.flags = std::move(names.flags);
  package.device = device.name();
  package.inputs = std::move(names.inputs);
  package.outputs = std::move(names.outputs);
  std::vector<std::size_t> made_at_once;  // whether they can be planned is only known then
  for (std::size_t v = 0; v < variants.functions.size(); ++v)
    if (!plan::has_known_work(*variants.functions[v])) made_at_once.push_back(v);
  auto out = TESSERA_TRY(engine::PlanRunner::create(
      std::move(package), device,
      {.bytes = limits.total_bytes, .work = static_cast<double>(limits.work), .seconds = limits.seconds},
      [functions = std::move(variants.functions), &device](std::size_t v) {
        return planned(functions[v], device);
      }));
  for (const std::size_t v : made_at_once) TESSERA_TRY(out.load(v));
  return out;
}

}  // namespace

PlannedModel::PlannedModel(const onnx::Model& model, engine::PlanRunner runner)
    : runner_(std::move(runner)), file_(model.file) {
  for (const onnx::ValueInfo* input : onnx::required_inputs(model)) inputs_.push_back(*input);
}

Result<PlannedModel> PlannedModel::create(const onnx::Model& model, runtime::Device& device,
                                          const onnx::Limits& limits) {
  const auto whole = [&]() -> Result<engine::PlanRunner> {
    return runner_of(model, {{TESSERA_TRY(onnx::import_function(model, limits))}, {}}, device, limits);
  };
  auto runner = whole();
  if (!runner && runner.error().code() == ErrorCode::unsupported)
    if (auto flags = onnx::find_flags(model, plan::most_flags); !flags.empty())
      runner = runner_of(model, TESSERA_TRY(onnx::import_by_flags(model, std::move(flags), limits)), device,
                         limits);
  if (!runner) return std::move(runner).error();
  return PlannedModel(model, *std::move(runner));
}

Result<std::vector<onnx::DataValue>> PlannedModel::run(std::span<const onnx::DataValue> inputs) {
  if (inputs.size() != inputs_.size())
    return Error(ErrorCode::invalid_argument,
                 cat("the model takes ", inputs_.size(), " inputs, got ", inputs.size()), {file_, 0, 0});
  std::vector<HostTensor> tensors;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].kind != onnx::DataValue::Kind::tensor)
      return Error(ErrorCode::unsupported, cat("input ", onnx::shown(inputs_[i].name), " is no tensor"),
                   {file_, 0, 0});
    tensors.push_back(inputs[i].tensors[0]);
    auto fits = onnx::check_input(inputs_[i], tensors[i].dtype(), tensors[i].shape());
    if (!fits) return std::move(fits).error().at({file_, 0, 0});
  }
  std::vector<onnx::DataValue> out;
  for (HostTensor& result : TESSERA_TRY(runner_.run(tensors)))
    out.push_back({onnx::DataValue::Kind::tensor, {std::move(result)}});
  return out;
}
