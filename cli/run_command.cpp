#include <algorithm>
#include <cstdio>

#include "cli/command.h"
#include "tessera/base/json.h"
#include "tessera/onnx/import.h"
#include "tessera/onnx/value_target.h"

using namespace tessera;
using namespace tessera::cli;

namespace {

struct Options {
  std::string file;
  std::vector<std::string> inputs;
  bool json = false;
};

/// The files of the model's inputs, in their order: those with a name first, the others in the order they are
/// given.
Result<std::vector<std::string>> files_of(const Options& options,
                                          const std::vector<const onnx::ValueInfo*>& inputs) {
  std::vector<std::string> out(inputs.size()), unnamed;
  for (const std::string& given : options.inputs) {
    const std::size_t equals = given.find('=');
    if (equals == std::string::npos) {
      unnamed.push_back(given);
      continue;
    }
    const std::string name = given.substr(0, equals);
    const auto found =
        std::find_if(inputs.begin(), inputs.end(), [&](const auto* input) { return input->name == name; });
    if (found == inputs.end())
      return Error(ErrorCode::invalid_argument, cat("--input: the model has no input ", onnx::shown(name)));
    std::string& file = out[static_cast<std::size_t>(found - inputs.begin())];
    if (!file.empty())
      return Error(ErrorCode::invalid_argument, cat("--input: ", onnx::shown(name), " is given twice"));
    file = given.substr(equals + 1);
  }
  std::size_t next = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (!out[i].empty()) continue;
    if (next == unnamed.size())
      return Error(ErrorCode::invalid_argument,
                   cat("there is no --input for ", onnx::shown(inputs[i]->name)));
    out[i] = unnamed[next++];
  }
  if (next < unnamed.size())
    return Error(ErrorCode::invalid_argument, cat("--input is given ", options.inputs.size(),
                                                  " times, the model has ", inputs.size(), " inputs"));
  return out;
}

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

void write_json_value(JsonWriter& json, std::string_view name, const onnx::DataValue& value) {
  json.begin_object().member("name", name).key("tensors").begin_array();
  for (const op::HostTensor& tensor : value.tensors) {
    json.begin_object().member("dtype", ir::to_string(tensor.dtype())).member("shape", tensor.shape());
    json.member("elements", onnx::numbers_of(tensor)).end_object();
  }
  json.end_array().end_object();
}

Result<Answer> run_model(const Options& options) {
  const onnx::Model model = TESSERA_TRY(onnx::read_model(options.file));
  TESSERA_TRY(onnx::check_operators(model));
  std::vector<onnx::DataValue> inputs;
  const auto required = onnx::required_inputs(model);
  const auto files = TESSERA_TRY(files_of(options, {required.begin(), required.end()}));
  for (std::size_t i = 0; i < files.size(); ++i)
    inputs.push_back(TESSERA_TRY(onnx::read_value(files[i], required[i]->type)));
  const auto outputs = TESSERA_TRY(onnx::run(model, inputs));
  JsonWriter json(JsonWriter::Style::indented);
  json.begin_array();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::string& name = model.graph.outputs[i].name;
    options.json ? write_json_value(json, name, outputs[i]) : print_text(name, outputs[i]);
  }
  if (options.json) std::printf("%s\n", json.end_array().text().c_str());
  return Answer::yes;
}

}  // namespace

void tessera::cli::add_run(Commands& commands) {
  auto options = std::make_shared<Options>();
  CLI::App& command = commands.add("run", "run an ONNX model on the reference",
                                   "  tessera run model.onnx --input x=input_0.pb\n"
                                   "  tessera run model.onnx --input input_0.pb --input input_1.pb --json",
                                   [options] { return run_model(*options); });
  command.add_option("MODEL", options->file, "the model")->required();
  command.add_option("--input", options->inputs,
                     "name=FILE, or FILE for the next input; a tensor in ONNX's format");
  command.add_flag("--json", options->json, "print all elements as JSON");
}
