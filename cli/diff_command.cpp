#include <cstdio>

#include "cli/command.h"
#include "cli/model_inputs.h"
#include "cli/progress.h"
#include "tessera/base/json.h"
#include "tessera/engine/devices.h"
#include "tessera/model/device_diff.h"

using namespace tessera;
using namespace tessera::cli;

namespace {

struct DiffOptions {
  std::string file;
  TensorSourceOptions inputs;
  std::vector<std::string> devices;
  DiffTolerance tolerance;
  bool json = false;
  bool quiet = false;
};

void print_text(const DeviceDiff& diff, const DiffOptions& options) {
  if (!diff.first) {
    std::printf("%s and %s agree on all %zu calls\n", options.devices[0].c_str(), options.devices[1].c_str(),
                diff.calls);
    return;
  }
  const DeviceDifference& first = *diff.first;
  const std::string text =
      cat("first difference: ", first.node, ", node ", first.position, " of the graph, result ", first.result,
          " of ", first.op, "\n  element ", first.element, " is ", first.first, " on ", options.devices[0],
          ", ", first.second, " on ", options.devices[1], "; the largest difference is ", first.largest, "\n",
          diff.different, " of ", diff.calls, " calls differ\n");
  std::fwrite(text.data(), 1, text.size(), stdout);
}

void print_json(const DeviceDiff& diff) {
  JsonWriter json(JsonWriter::Style::indented);
  json.begin_object().member("calls", diff.calls).member("different", diff.different).key("first");
  if (const auto& first = diff.first) {
    json.begin_object()
        .member("node", first->node)
        .member("position", first->position)
        .member("op", first->op);
    json.member("result", first->result).member("element", first->element).member("first", first->first);
    json.member("second", first->second).member("largest", first->largest).end_object();
  } else {
    json.null();
  }
  json.end_object();
  std::printf("%s\n", json.text().c_str());
}

Result<Answer> diff_model(const DiffOptions& options) {
  if (options.devices.size() != 2)
    return Error(ErrorCode::invalid_argument,
                 cat("--device is given ", options.devices.size(), " times, expected 2"));
  const auto a = TESSERA_TRY(engine::find_device(options.devices[0]));
  const auto b = TESSERA_TRY(engine::find_device(options.devices[1]));
  const onnx::Model model = TESSERA_TRY(onnx::read_model(options.file));
  TESSERA_TRY(onnx::check_operators(model));
  const auto inputs = TESSERA_TRY(model_inputs(model, options.inputs));
  Progress progress(stderr);
  onnx::RunOptions how;
  how.observer = [&](const onnx::Node& node, std::size_t position) {
    if (!options.quiet)
      progress.draw(static_cast<double>(position) / static_cast<double>(model.graph.nodes.size()),
                    onnx::describe(node));
  };
  const DeviceDiff diff = TESSERA_TRY(diff_devices(model, inputs, *a, *b, options.tolerance, how));
  progress.clear();
  if (options.json)
    print_json(diff);
  else if (!options.quiet)
    print_text(diff, options);
  return diff.first ? Answer::no : Answer::yes;
}

}  // namespace

void tessera::cli::add_diff(Commands& commands) {
  auto options = std::make_shared<DiffOptions>();
  CLI::App& command =
      commands.add("diff", "run an ONNX model on two devices and find the first node where they disagree",
                   "  tessera diff model.onnx --device reference --device cpu --random 1 --dim batch=2\n"
                   "  exit 0: they agree, 1: they do not",
                   [options] { return diff_model(*options); });
  command.add_option("MODEL", options->file, "the model")->required();
  command.add_option("--device", options->devices, cat("twice, of ", join(engine::device_names(), ", ")))
      ->required();
  add_tensor_source_options(command, options->inputs);
  command
      .add_option("--relative", options->tolerance.relative,
                  "differences up to this part of a value are none")
      ->check(finite_number);
  command.add_option("--absolute", options->tolerance.absolute, "and up to this")->check(finite_number);
  command.add_flag("--json", options->json, "print JSON");
  command.add_flag("--quiet", options->quiet, "the exit code says it all");
}
