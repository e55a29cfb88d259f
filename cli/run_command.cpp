#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <set>

#include "cli/command.h"
#include "cli/model_inputs.h"
#include "cli/progress.h"
#include "tessera/base/json.h"
#include "tessera/engine/devices.h"
#include "tessera/model/planned_model.h"
#include "tessera/model/tensor_target.h"
#include "tessera/tensor/io.h"

using namespace tessera;
using namespace tessera::cli;

namespace {

struct Options {
  std::string file;
  ModelInputOptions inputs;
  std::string output;
  std::string device = "reference";
  int repeat = 1;
  double seconds = onnx::Limits().seconds;
  double work = static_cast<double>(onnx::Limits().work);
  bool json = false;
  bool quiet = false;
};

struct Outcome {
  std::vector<onnx::DataValue> outputs;
  std::vector<double> seconds;  ///< of each run
};

/// Calls `run` as often as is asked for and takes the time.
template <class F>
Result<Outcome> repeated(const Options& options, F&& run) {
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
                                 const Options& options) {
  Progress progress(stderr);
  onnx::RunOptions how;
  how.limits = limits;
  how.call = [&](const op::CallInfo& call, auto in, auto out) { return device.run(call, in, out); };
  auto out = repeated(options, [&](int i) {
    how.observer = [&, i](const onnx::Node& node, std::size_t position) {
      if (options.quiet) return;
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
                               const Options& options) {
  const auto device = TESSERA_TRY(engine::find_device(options.device));
  onnx::Limits limits;
  limits.seconds = options.seconds;
  limits.work = static_cast<std::int64_t>(options.work);
  if (options.device != "reference") {
    auto planned = PlannedModel::create(model, *device, limits);
    if (planned) return repeated(options, [&](int) { return planned->run(inputs); });
    if (planned.error().code() != ErrorCode::unsupported) return std::move(planned).error();
    if (!options.quiet)
      std::fprintf(stderr, "tessera: runs node by node: %s\n", planned.error().message().c_str());
  }
  return run_node_by_node(model, inputs, *device, limits, options);
}

// ---- what is shown

std::string type_text(const op::HostTensor& tensor) {
  return cat(tensor.dtype(), "[", join(tensor.shape(), ", "), "]");
}

void print_text(std::string_view name, const onnx::DataValue& value) {
  constexpr std::size_t most = 8;
  std::string out = cat(printable(name), ":");
  if (value.kind == onnx::DataValue::Kind::none) out += " nothing";
  if (value.kind == onnx::DataValue::Kind::sequence) out += cat(" sequence of ", value.tensors.size());
  for (const op::HostTensor& tensor : value.tensors) {
    auto numbers = onnx::numbers_of(tensor);
    const bool is_long = numbers.size() > most;
    numbers.resize(std::min(numbers.size(), most));
    out += cat(" ", type_text(tensor), " [", join(numbers, ", "), is_long ? ", …]" : "]");
  }
  std::printf("%s\n", out.c_str());
}

void print_times(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  std::printf("%zu runs: fastest %.3f ms, median %.3f ms\n", seconds.size(), 1e3 * seconds[0],
              1e3 * seconds[seconds.size() / 2]);
}

void print_json(const onnx::Model& model, const Outcome& outcome) {
  JsonWriter json(JsonWriter::Style::indented);
  json.begin_object().key("outputs").begin_array();
  for (std::size_t i = 0; i < outcome.outputs.size(); ++i) {
    json.begin_object().member("name", model.graph.outputs[i].name).key("tensors").begin_array();
    for (const op::HostTensor& tensor : outcome.outputs[i].tensors) {
      json.begin_object().member("dtype", ir::to_string(tensor.dtype())).member("shape", tensor.shape());
      json.member("elements", onnx::numbers_of(tensor)).end_object();
    }
    json.end_array().end_object();
  }
  json.end_array().member("seconds", outcome.seconds).end_object();
  std::printf("%s\n", json.text().c_str());
}

// ---- what is saved

/// A name from a file as the name of a file: letters, digits and a few marks, not used before.
std::string file_name(std::string name, std::set<std::string>& used) {
  for (char& c : name) {
    const bool is_plain =
        std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
    if (!is_plain) c = '_';
  }
  if (name.empty() || name[0] == '.') name.insert(0, "_");
  name = name.substr(0, 200);
  std::string out = name;
  for (int i = 1; !used.insert(out).second; ++i) out = cat(name, "_", i);
  return out + ".npy";
}

Result<void> save(const onnx::Model& model, const Outcome& outcome, const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return Error(ErrorCode::io, cat("cannot be made: ", error.message()), {printable(folder), 0, 0});
  std::set<std::string> used;
  for (std::size_t i = 0; i < outcome.outputs.size(); ++i) {
    const onnx::DataValue& value = outcome.outputs[i];
    for (std::size_t k = 0; k < value.tensors.size(); ++k) {
      const std::string& name = model.graph.outputs[i].name;
      const bool is_sequence = value.kind == onnx::DataValue::Kind::sequence;
      const auto path =
          std::filesystem::path(folder) / file_name(is_sequence ? cat(name, "_", k) : name, used);
      save_npy(path.string(), tensor_of(value.tensors[k], engine::Engine::default_engine()));
    }
  }
  return {};
}

Result<Answer> run_model(const Options& options) {
  const onnx::Model model = TESSERA_TRY(onnx::read_model(options.file));
  TESSERA_TRY(onnx::check_operators(model));
  const auto inputs = TESSERA_TRY(model_inputs(model, options.inputs));
  const Outcome outcome = TESSERA_TRY(run_repeatedly(model, inputs, options));
  if (!options.output.empty()) TESSERA_TRY(save(model, outcome, options.output));
  if (options.json)
    print_json(model, outcome);
  else if (!options.quiet)
    for (std::size_t i = 0; i < outcome.outputs.size(); ++i)
      print_text(model.graph.outputs[i].name, outcome.outputs[i]);
  if (options.repeat > 1 && !options.json && !options.quiet) print_times(outcome.seconds);
  return Answer::yes;
}

}  // namespace

void tessera::cli::add_run(Commands& commands) {
  auto options = std::make_shared<Options>();
  CLI::App& command =
      commands.add("run", "run an ONNX model",
                   "  tessera run model.onnx --input x=x.npy --input mask=raw:i64:1x128:mask.bin\n"
                   "  tessera run model.onnx --input inputs.npz --output results\n"
                   "  tessera run model.onnx --random 1 --dim batch=4 --dim x:2=224 --repeat 5",
                   [options] { return run_model(*options); });
  command.add_option("MODEL", options->file, "the model")->required();
  add_model_input_options(command, options->inputs);
  command.add_option("--output", options->output, "save the outputs as .npy files in this folder");
  command.add_option("--device", options->device, cat("one of ", join(engine::device_names(), ", ")));
  command.add_option("--repeat", options->repeat, "run so often and show the times")
      ->check(CLI::Range(1, 1000000));
  command.add_option("--seconds", options->seconds, "give up after this time")->check(finite_number);
  command.add_option("--work", options->work, "the most multiply-adds")->check(finite_number);
  command.add_flag("--json", options->json, "print all elements as JSON");
  command.add_flag("--quiet", options->quiet, "show neither progress nor outputs");
}
