#include "tessera/onnx/model.h"

#include <algorithm>

using namespace tessera;
using namespace tessera::onnx;

const Attribute* Node::find(std::string_view attribute) const {
  const auto at = std::find_if(attributes.begin(), attributes.end(),
                               [&](const Attribute& a) { return a.name == attribute; });
  return at == attributes.end() ? nullptr : &*at;
}

std::optional<std::int64_t> tessera::onnx::find_opset(const Opsets& opsets, std::string_view domain) {
  for (const auto& [name, version] : opsets)
    if (name == domain) return version;
  return std::nullopt;
}

const LocalFunction* Model::find_function(std::string_view domain, std::string_view name) const {
  for (const LocalFunction& function : functions)
    if (function.name == name && function.domain == domain) return &function;
  return nullptr;
}

std::string tessera::onnx::describe(const Node& node) {
  std::string_view name = node.name;
  for (const std::string& output : node.outputs)
    if (name.empty()) name = output;
  const std::string domain = node.domain.empty() ? "" : cat(printable(shortened(node.domain, 60)), ".");
  return cat("node ", shown(name), " (", domain, printable(shortened(node.op, 60)), ")");
}

std::string tessera::onnx::to_text(const DeclaredDim& dim) {
  if (const auto* size = std::get_if<std::int64_t>(&dim)) return cat(*size);
  const auto* name = std::get_if<std::string>(&dim);
  return name == nullptr || name->empty() ? "?" : shortened(printable(*name), 120);
}

std::string tessera::onnx::to_text(const DeclaredType& type) {
  constexpr std::string_view kinds[] = {"unknown", "", "sequence of ", "optional ", "other"};
  const std::string out = cat(kinds[static_cast<std::size_t>(type.kind)], printable(type.dtype_name));
  if (!type.shape) return out;
  std::vector<std::string> dims;
  for (const DeclaredDim& dim : *type.shape) dims.push_back(to_text(dim));
  return cat(out, "[", join(dims, ", "), "]");
}
