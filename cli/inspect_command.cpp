#include <cstdio>
#include <map>

#include "cli/command.h"
#include "cli/variants.h"
#include "tessera/base/json.h"
#include "tessera/ir/print.h"
#include "tessera/onnx/variants.h"

using namespace tessera;
using namespace tessera::cli;

namespace {

struct InspectOptions {
  std::string file;
  bool json = false;
  bool function = false;
};

struct ModelSummary {
  std::map<std::string, int> ops;
  std::int64_t parameters = 0, parameter_bytes = 0;
  std::map<std::string, std::vector<std::string>> dims;  ///< named sizes, and where inputs have them
  std::vector<onnx::Unsupported> unsupported;
  std::string wrong;               ///< why it cannot run although all operators are known; empty if it can
  std::vector<std::string> flags;  ///< that choose among functions; none: the model is one function
  std::string not_a_function;      ///< why the model is no function of symbolic sizes; empty if it is

  [[nodiscard]] bool can_run() const { return unsupported.empty() && wrong.empty(); }
};

void add_tensor(const onnx::Tensor& tensor, ModelSummary& out) {
  if (!tensor.unusable.empty()) return;
  out.parameters += tensor.value.size();
  out.parameter_bytes += static_cast<std::int64_t>(tensor.value.byte_size());
}

/// Counts operators and parameters, also those of bodies and functions.
void add_nodes(std::span<const onnx::Node> nodes, ModelSummary& out) {
  for (const onnx::Node& node : nodes) {
    ++out.ops[printable(node.domain.empty() ? node.op : cat(node.domain, ".", node.op))];
    for (const onnx::Attribute& attribute : node.attributes) {
      if (const auto* tensor = std::get_if<onnx::Tensor>(&attribute.value)) add_tensor(*tensor, out);
      const auto* graphs = std::get_if<std::vector<onnx::Graph>>(&attribute.value);
      if (graphs == nullptr) continue;
      for (const onnx::Graph& graph : *graphs) {
        for (const onnx::Tensor& tensor : graph.initializers) add_tensor(tensor, out);
        add_nodes(graph.nodes, out);
      }
    }
  }
}

void add_dims(const onnx::ValueInfo& input, ModelSummary& out) {
  if (!input.type.shape) return;
  for (std::size_t axis = 0; axis < input.type.shape->size(); ++axis) {
    const onnx::DeclaredDim& dim = (*input.type.shape)[axis];
    if (std::holds_alternative<std::int64_t>(dim)) continue;
    out.dims[onnx::to_text(dim)].push_back(cat(printable(input.name), ":", axis));
  }
}

/// Why no run can be given an input: its elements have no dtype here. Empty if all can be.
std::string unusable_input(const onnx::Model& model) {
  for (const onnx::ValueInfo* input : onnx::required_inputs(model))
    if (!input->type.dtype && !input->type.dtype_name.empty())
      return cat("input '", printable(input->name), "' is ", onnx::to_text(input->type),
                 ", which no tensor can be");
  return {};
}

/// On one line.
std::string reason_of(const Error& error) {
  std::string out = error.message();
  for (const std::string& note : error.notes()) out += cat("; ", note);
  return out;
}

ModelSummary summary_of(const onnx::Model& model) {
  ModelSummary out;
  for (const onnx::Tensor& tensor : model.graph.initializers) add_tensor(tensor, out);
  add_nodes(model.graph.nodes, out);
  for (const onnx::LocalFunction& function : model.functions) add_nodes(function.nodes, out);
  for (const onnx::ValueInfo* input : onnx::required_inputs(model)) add_dims(*input, out);
  out.unsupported = onnx::unsupported_nodes(model);
  out.wrong = unusable_input(model);
  if (!out.can_run()) return out;
  const auto variants = onnx::import_variants(model, plan::most_flags);
  // What no function can say may still run node by node; what is no model cannot.
  if (!variants && variants.error().code() != ErrorCode::unsupported &&
      variants.error().code() != ErrorCode::limit)
    out.wrong = reason_of(variants.error());
  else if (!variants)
    out.not_a_function = reason_of(variants.error());
  for (const std::size_t flag : variants ? variants->flags : std::vector<std::size_t>())
    out.flags.push_back(printable(onnx::required_inputs(model)[flag]->name));
  return out;
}

void print_values(JsonWriter& json, std::string_view key, std::span<const onnx::ValueInfo> values) {
  json.key(key).begin_array();
  for (const onnx::ValueInfo& value : values)
    json.begin_object().member("name", value.name).member("type", onnx::to_text(value.type)).end_object();
  json.end_array();
}

void print_json(const onnx::Model& model, const ModelSummary& summary) {
  JsonWriter json(JsonWriter::Style::indented);
  json.begin_object().member("file", model.file).member("producer", model.producer);
  json.member("ir_version", model.ir_version);
  json.key("opsets").begin_object();
  for (const auto& [domain, version] : model.opsets)
    json.member(domain.empty() ? "ai.onnx" : domain, version);
  json.end_object();
  print_values(json, "inputs", model.graph.inputs);
  print_values(json, "outputs", model.graph.outputs);
  json.key("dims").begin_object();
  for (const auto& [name, places] : summary.dims) json.member(name, places);
  json.end_object()
      .member("parameters", summary.parameters)
      .member("parameter_bytes", summary.parameter_bytes);
  json.member("function", summary.can_run() && summary.not_a_function.empty());
  json.member("flags", summary.flags);
  json.key("ops").begin_object();
  for (const auto& [op, count] : summary.ops) json.member(op, count);
  json.end_object().key("unsupported").begin_array();
  for (const onnx::Unsupported& one : summary.unsupported)
    json.begin_object().member("node", one.node).member("op", one.op).member("opset", one.opset).end_object();
  json.end_array().key("wrong");
  summary.wrong.empty() ? json.null() : json.value(summary.wrong);
  json.end_object();
  std::printf("%s\n", json.text().c_str());
}

void print_text(const onnx::Model& model, const ModelSummary& summary) {
  std::string out = cat(model.file, "\n");
  for (const auto& [domain, version] : model.opsets)
    out += cat("opset   ", domain.empty() ? "ai.onnx" : printable(domain), " ", version, "\n");
  for (const onnx::ValueInfo& value : model.graph.inputs)
    out += cat("input   ", printable(value.name), ": ", onnx::to_text(value.type), "\n");
  for (const onnx::ValueInfo& value : model.graph.outputs)
    out += cat("output  ", printable(value.name), ": ", onnx::to_text(value.type), "\n");
  for (const auto& [name, places] : summary.dims)
    out += cat("size    ", name, ": ", join(places, ", "), "\n");
  out += cat("weights ", summary.parameters, " (", summary.parameter_bytes, " bytes)\n");
  for (const auto& [op, count] : summary.ops) out += cat("op      ", op, " x ", count, "\n");
  for (const onnx::Unsupported& one : summary.unsupported)
    out += cat("not supported: ", one.node, ", ", one.op, " of opset ", one.opset, "\n");
  if (!summary.wrong.empty())
    out += cat("not supported: ", summary.wrong, "\n");
  else if (summary.unsupported.empty() && !summary.not_a_function.empty())
    out += cat("supported: runs node by node; not as one function: ", summary.not_a_function, "\n");
  else if (summary.unsupported.empty())
    out += cat("supported: runs, and is one function for ",
               summary.flags.empty() ? "" : cat("each value of ", join(summary.flags, ", "), " and "),
               "inputs of any size\n");
  std::fwrite(out.data(), 1, out.size(), stdout);
}

Result<Answer> show(const InspectOptions& options) {
  if (options.function) {
    const NamedProgram program = TESSERA_TRY(read_onnx_program(options.file));
    std::string text;
    for (std::size_t v = 0; v < program.functions.size(); ++v)
      text += cat(program.functions.size() > 1 ? "# " : "", variant_title(program, v),
                  ir::print(*program.functions[v]));
    std::fwrite(text.data(), 1, text.size(), stdout);
    return Answer::yes;
  }
  const onnx::Model model = TESSERA_TRY(onnx::read_model(options.file));
  const ModelSummary summary = summary_of(model);
  options.json ? print_json(model, summary) : print_text(model, summary);
  return summary.can_run() ? Answer::yes : Answer::no;
}

}  // namespace

void tessera::cli::add_inspect(Commands& commands) {
  auto options = std::make_shared<InspectOptions>();
  CLI::App& command =
      commands.add("inspect", "show an ONNX model: inputs, outputs, sizes, operators, what is not supported",
                   "  tessera inspect model.onnx               exit 1 if it cannot run\n"
                   "  tessera inspect --json model.onnx\n"
                   "  tessera inspect --function model.onnx    the model as an IR function",
                   [options] { return show(*options); });
  command.add_option("MODEL", options->file, "the model")->required();
  command.add_flag("--json", options->json, "print JSON");
  command.add_flag("--function", options->function,
                   "print the imported function, or one for each value of its flags");
}
