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

/// The value of a required input: from "name=file.pb", or the next "file.pb" without a name.
Result<std::string> file_of(const Options& options, const std::string& name, std::size_t& next_unnamed) {
  std::vector<std::string> unnamed;
  for (const std::string& given : options.inputs) {
    const std::size_t equals = given.find('=');
    if (equals == std::string::npos)
      unnamed.push_back(given);
    else if (given.substr(0, equals) == name)
      return given.substr(equals + 1);
  }
  if (next_unnamed < unnamed.size()) return unnamed[next_unnamed++];
  return Error(ErrorCode::invalid_argument, cat("there is no --input for ", onnx::shown(name)));
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
  std::size_t next_unnamed = 0;
  for (const onnx::ValueInfo* input : onnx::required_inputs(model)) {
    const std::string file = TESSERA_TRY(file_of(options, input->name, next_unnamed));
    inputs.push_back(TESSERA_TRY(onnx::read_value(file, input->type)));
  }
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
