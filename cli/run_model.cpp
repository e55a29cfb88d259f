#include <chrono>
#include <cstdio>

#include "cli/model_inputs.h"
#include "cli/program_file.h"
#include "cli/progress.h"
#include "cli/run_options.h"
#include "tessera/base/text.h"
#include "tessera/model/planned_model.h"

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

/// As one plan where that can be; the reference is the meaning of the model and goes node by node.
Result<Outcome> run_repeatedly(const onnx::Model& model, const std::vector<onnx::DataValue>& inputs,
                               const RunOptions& options) {
  const auto device = TESSERA_TRY(chosen_device(options.device));
  onnx::Limits limits;
  limits.seconds = options.seconds.value_or(limits.seconds);
  if (options.work) limits.work = static_cast<std::int64_t>(*options.work);
  if (device->name() != "reference") {
    auto planned = PlannedModel::create(model, *device, limits);
    if (planned) {
      planned->set_profiling(options.profiling());
      Outcome out = TESSERA_TRY(repeated(options, [&](int) { return planned->run(inputs); }));
      out.profile = planned->profile();
      return out;
    }
    if (planned.error().code() != ErrorCode::unsupported) return std::move(planned).error();
    if (!options.outputs.quiet)
      std::fprintf(stderr, "tessera: runs node by node: %s\n", planned.error().message().c_str());
  }
  if (options.profiling() != ProfilingLevel::none)
    return Error(ErrorCode::unsupported, cat("--profile: on ", device->name(),
                                             " the model runs node by node, only plans are measured"));
  return run_node_by_node(model, inputs, *device, limits, options);
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
  const onnx::Model model = TESSERA_TRY(onnx::read_model(options.file));
  TESSERA_TRY(onnx::check_operators(model));
  const auto inputs = TESSERA_TRY(model_inputs(model, options.inputs));
  Outcome outcome = TESSERA_TRY(run_repeatedly(model, inputs, options));
  RunOutcome out{.outputs = {}, .seconds = std::move(outcome.seconds), .profile = std::move(outcome.profile)};
  for (std::size_t i = 0; i < outcome.outputs.size(); ++i)
    out.outputs.push_back(named(model.graph.outputs[i], std::move(outcome.outputs[i])));
  return out;
}
