#include "tessera/model/model_plan.h"

#include <filesystem>
#include <utility>

#include "tessera/base/text.h"
#include "tessera/compile/plan_program.h"
#include "tessera/engine/engine.h"
#include "tessera/model/model_package.h"
#include "tessera/plan/work.h"

using namespace tessera;

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
                                     engine::Engine& engine, const onnx::Limits& limits) {
  runtime::Device& device = engine.device();
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
      std::move(package), engine, std::filesystem::path(model.file).filename().string(),
      {.bytes = limits.total_bytes, .work = static_cast<double>(limits.work), .seconds = limits.seconds},
      [functions = std::move(variants.functions), &device](std::size_t v) {
        return planned(functions[v], device);
      }));
  for (const std::size_t v : made_at_once) TESSERA_TRY(out.load(v));
  return out;
}

}  // namespace

Result<engine::PlanRunner> tessera::plan_model(const onnx::Model& model, engine::Engine& engine,
                                               const onnx::Limits& limits) {
  auto function = onnx::import_function(model, limits);
  auto whole = function ? runner_of(model, {{*std::move(function)}, {}}, engine, limits)
                        : Result<engine::PlanRunner>(std::move(function).error());
  if (whole || whole.error().code() != ErrorCode::unsupported) return whole;
  auto flags = onnx::find_flags(model, plan::most_flags);
  if (flags.empty()) return whole;
  return runner_of(model, TESSERA_TRY(onnx::import_by_flags(model, std::move(flags), limits)), engine,
                   limits);
}
