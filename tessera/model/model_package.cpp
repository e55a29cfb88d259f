#include "tessera/model/model_package.h"

#include "tessera/base/text.h"

using namespace tessera;

compiler::PackageOptions tessera::package_options(const onnx::Model& model,
                                                  std::span<const std::size_t> flags) {
  compiler::PackageOptions out;
  const auto inputs = onnx::required_inputs(model);
  for (const onnx::ValueInfo* input : inputs) out.inputs.push_back(printable(input->name));
  for (const std::size_t flag : flags)
    out.flags.push_back({.input = static_cast<std::uint32_t>(flag),
                         .rank = static_cast<std::uint32_t>(inputs[flag]->type.shape->size())});
  for (const onnx::ValueInfo& output : model.graph.outputs) out.outputs.push_back(output.name);
  return out;
}
