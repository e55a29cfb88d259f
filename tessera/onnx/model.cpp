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

namespace {

std::string function_key(std::string_view domain, std::string_view name) {
  return std::string(domain).append(1, '\0').append(name);
}

}  // namespace

void Model::add_function(LocalFunction function) {
  function_index.emplace(function_key(function.domain, function.name), functions.size());
  functions.push_back(std::move(function));
}

const LocalFunction* Model::find_function(std::string_view domain, std::string_view name) const {
  if (functions.empty()) return nullptr;
  const auto at = function_index.find(function_key(domain, name));
  return at == function_index.end() ? nullptr : &functions[at->second];
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
