#include <algorithm>
#include <chrono>
#include <cstdio>

#include "cli/model_inputs.h"
#include "cli/program_file.h"
#include "cli/progress.h"
#include "cli/run_options.h"
#include "tessera/base/text.h"
#include "tessera/engine/engine.h"
#include "tessera/model/onnx_model.h"
#include "tessera/model/tensor_target.h"
#include "tessera/onnx/import.h"

using namespace tessera;
using namespace tessera::cli;

namespace {

struct Outcome {
  std::vector<onnx::DataValue> outputs;
  std::vector<double> seconds;
  engine::Profile profile = {};
};

/// Calls `run` as often as is asked for and takes the time.
template <class F>
Result<Outcome> repeated(const RunOptions& options, F&& run) {
  Outcome out;
  for (int i = 0; i < options.repeat; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    out.outputs = TESSERA_TRY(run(i));
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
    out.seconds.push_back(passed.count());
  }
  return out;
}

Result<Outcome> run_node_by_node(const onnx::Model& model, const std::vector<onnx::DataValue>& inputs,
                                 runtime::Device& device, const onnx::Limits& limits,
                                 const RunOptions& options) {
  Progress progress(stderr);
  onnx::RunOptions how;
  how.limits = limits;
  how.call = [&](const op::CallInfo& call, auto in, auto out) { return device.run(call, in, out); };
  auto out = repeated(options, [&](int i) {
    how.observer = [&, i](const onnx::Node& node, std::size_t position) {
      if (options.outputs.quiet) return;
      const double nodes =
          static_cast<double>(model.graph.nodes.size() * static_cast<std::size_t>(options.repeat));
      const double before = static_cast<double>(model.graph.nodes.size() * static_cast<std::size_t>(i));
      progress.draw((before + static_cast<double>(position)) / nodes, onnx::describe(node));
    };
    return onnx::run(model, inputs, how);
  });
  progress.clear();
  return out;
}

bool are_tensors(const std::vector<onnx::DataValue>& values) {
  return std::ranges::all_of(
      values, [](const onnx::DataValue& value) { return value.kind == onnx::DataValue::Kind::tensor; });
}

/// As every program calls a model.
Result<Outcome> run_as_plans(const OnnxModel& model, const std::vector<onnx::DataValue>& inputs,
                             const std::shared_ptr<engine::Engine>& engine, const RunOptions& options) {
  const Here nowhere("", 0);  // what is wrong is the user's affair, not that of a line here
  std::vector<Tensor> given, results;
  for (const onnx::DataValue& input : inputs) given.push_back(tensor_of(input.tensors[0], engine));
  engine->set_profiling(options.profiling());
  try {
    auto out = repeated(options, [&](int) -> Result<std::vector<onnx::DataValue>> {
      results = model(given, nowhere);
      TESSERA_TRY(engine->synchronize());
      return std::vector<onnx::DataValue>();
    });
    if (!out) return out;
    for (const Tensor& result : results)
      out->outputs.push_back({onnx::DataValue::Kind::tensor, {elements_of(result)}});
    out->profile = engine->profile();
    return out;
  } catch (const Exception& exception) {
    return exception.error();
  }
}

/// As plans where that can be; the reference is the meaning of the model and goes node by node.
Result<Outcome> run_repeatedly(const OnnxModel& model, const std::vector<onnx::DataValue>& inputs,
                               const std::shared_ptr<engine::Engine>& engine, const onnx::Limits& limits,
                               const RunOptions& options) {
  runtime::Device& device = engine->device();
  if (device.name() != "reference") {
    const std::string why = are_tensors(inputs) ? model.why_recorded() : "an input is no tensor";
    if (why.empty()) return run_as_plans(model, inputs, engine, options);
    if (!options.outputs.quiet) std::fprintf(stderr, "tessera: runs node by node: %s\n", why.c_str());
  }
  if (options.profiling() != ProfilingLevel::none)
    return Error(ErrorCode::unsupported, cat("--profile: on ", device.name(),
                                             " the model runs node by node, only plans are measured"));
  return run_node_by_node(model.source(), inputs, device, limits, options);
}

onnx::Limits limits_of(const RunOptions& options) {
  onnx::Limits out;
  out.seconds = options.seconds.value_or(out.seconds);
  if (options.work) out.work = static_cast<std::int64_t>(*options.work);
  return out;
}

NamedOutput named(const onnx::ValueInfo& info, onnx::DataValue value) {
  using Kind = onnx::DataValue::Kind;
  NamedOutput out{.name = info.name, .tensors = std::move(value.tensors)};
  if (value.kind == Kind::none) out.kind = NamedOutput::Kind::none;
  if (value.kind == Kind::sequence) out.kind = NamedOutput::Kind::sequence;
  return out;
}

}  // namespace

Result<RunOutcome> tessera::cli::run_model(const RunOptions& options) {
  if (!options.parameters.empty())
    return Error(ErrorCode::invalid_argument, "--parameter: a model has no parameters");
  TESSERA_TRY(check_choice({.path = options.file, .kind = FileKind::model}, {.name = options.function}));
  onnx::Model read = TESSERA_TRY(onnx::read_model(options.file));
  TESSERA_TRY(onnx::check_operators(read));
  const auto inputs = TESSERA_TRY(model_inputs(read, options.inputs));
  const auto engine = engine::Engine::create({.device = TESSERA_TRY(chosen_device(options.device))});
  const onnx::Limits limits = limits_of(options);
  const OnnxModel model = onnx_model(std::move(read), {.limits = limits, .engine = engine});
  Outcome outcome = TESSERA_TRY(run_repeatedly(model, inputs, engine, limits, options));
  RunOutcome out{.outputs = {}, .seconds = std::move(outcome.seconds), .profile = std::move(outcome.profile)};
  for (std::size_t i = 0; i < outcome.outputs.size(); ++i)
    out.outputs.push_back(named(model.source().graph.outputs[i], std::move(outcome.outputs[i])));
  return out;
}
