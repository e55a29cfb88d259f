#include <cstdio>
#include <map>

#include "cli/command.h"
#include "tessera/base/json.h"
#include "tessera/ir/print.h"
#include "tessera/onnx/import.h"

using namespace tessera;
using namespace tessera::cli;

namespace {

struct Options {
  std::string file;
  bool json = false;
  bool function = false;
};

std::string type_text(const onnx::DeclaredType& type) {
  constexpr std::string_view kinds[] = {"unknown", "", "sequence of ", "optional ", "other"};
  std::string out(kinds[static_cast<std::size_t>(type.kind)]);
  out += printable(type.dtype_name);
  if (!type.shape) return out;
  std::vector<std::string> dims;
  for (const onnx::DeclaredDim& dim : *type.shape)
    dims.push_back(std::visit(
        [](const auto& d) -> std::string {
          if constexpr (std::is_same_v<std::decay_t<decltype(d)>, std::monostate>)
            return "?";
          else if constexpr (std::is_same_v<std::decay_t<decltype(d)>, std::string>)
            return printable(d);
          else
            return cat(d);
        },
        dim));
  return cat(out, "[", join(dims, ", "), "]");
}

/// How often each operator is used, also in bodies and functions.
void count_ops(std::span<const onnx::Node> nodes, std::map<std::string, int>& counts) {
  for (const onnx::Node& node : nodes) {
    ++counts[printable(node.domain.empty() ? node.op : cat(node.domain, ".", node.op))];
    for (const onnx::Attribute& attribute : node.attributes)
      if (const auto* graphs = std::get_if<std::vector<onnx::Graph>>(&attribute.value))
        for (const onnx::Graph& graph : *graphs) count_ops(graph.nodes, counts);
  }
}

struct Summary {
  std::map<std::string, int> ops;
  std::int64_t parameters = 0;
  std::vector<onnx::Unsupported> unsupported;
};

Summary summary_of(const onnx::Model& model) {
  Summary out;
  count_ops(model.graph.nodes, out.ops);
  for (const onnx::LocalFunction& function : model.functions) count_ops(function.nodes, out.ops);
  for (const onnx::Tensor& tensor : model.graph.initializers)
    if (tensor.unusable.empty()) out.parameters += tensor.value.size();
  out.unsupported = onnx::unsupported_nodes(model);
  return out;
}

void print_values(JsonWriter& json, std::string_view key, std::span<const onnx::ValueInfo> values) {
  json.key(key).begin_array();
  for (const onnx::ValueInfo& value : values)
    json.begin_object().member("name", value.name).member("type", type_text(value.type)).end_object();
  json.end_array();
}

void print_json(const onnx::Model& model, const Summary& summary) {
  JsonWriter json(JsonWriter::Style::indented);
  json.begin_object().member("file", model.file).member("producer", model.producer);
  json.key("opsets").begin_object();
  for (const auto& [domain, version] : model.opsets)
    json.member(domain.empty() ? "ai.onnx" : domain, version);
  json.end_object();
  print_values(json, "inputs", model.graph.inputs);
  print_values(json, "outputs", model.graph.outputs);
  json.member("parameters", summary.parameters).key("ops").begin_object();
  for (const auto& [op, count] : summary.ops) json.member(op, count);
  json.end_object().key("unsupported").begin_array();
  for (const onnx::Unsupported& one : summary.unsupported)
    json.begin_object().member("node", one.node).member("op", one.op).member("opset", one.opset).end_object();
  json.end_array().end_object();
  std::printf("%s\n", json.text().c_str());
}

void print_text(const onnx::Model& model, const Summary& summary) {
  std::string out = cat(model.file, "\n");
  for (const auto& [domain, version] : model.opsets)
    out += cat("opset   ", domain.empty() ? "ai.onnx" : printable(domain), " ", version, "\n");
  for (const onnx::ValueInfo& value : model.graph.inputs)
    out += cat("input   ", printable(value.name), ": ", type_text(value.type), "\n");
  for (const onnx::ValueInfo& value : model.graph.outputs)
    out += cat("output  ", printable(value.name), ": ", type_text(value.type), "\n");
  out += cat("weights ", summary.parameters, "\n");
  for (const auto& [op, count] : summary.ops) out += cat("op      ", op, " x ", count, "\n");
  for (const onnx::Unsupported& one : summary.unsupported)
    out += cat("not supported: ", one.node, ", ", one.op, " of opset ", one.opset, "\n");
  std::fwrite(out.data(), 1, out.size(), stdout);
}

Result<Answer> show(const Options& options) {
  const onnx::Model model = TESSERA_TRY(onnx::read_model(options.file));
  if (options.function) {
    const std::string text = ir::print(*TESSERA_TRY(onnx::import_function(model)));
    std::fwrite(text.data(), 1, text.size(), stdout);
    return Answer::yes;
  }
  const Summary summary = summary_of(model);
  options.json ? print_json(model, summary) : print_text(model, summary);
  return summary.unsupported.empty() ? Answer::yes : Answer::no;
}

}  // namespace

void tessera::cli::add_onnx(Commands& commands) {
  auto options = std::make_shared<Options>();
  CLI::App& command =
      commands.add("onnx", "show an ONNX model: inputs, outputs, operators, what is not supported",
                   "  tessera onnx model.onnx               exit 1 if an operator is not supported\n"
                   "  tessera onnx --json model.onnx\n"
                   "  tessera onnx --function model.onnx    the model as one IR function",
                   [options] { return show(*options); });
  command.add_option("MODEL", options->file, "the model")->required();
  command.add_flag("--json", options->json, "print JSON");
  command.add_flag("--function", options->function, "print the imported function");
}
