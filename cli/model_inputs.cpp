#include "cli/model_inputs.h"

#include "cli/command.h"

using namespace tessera;
using namespace tessera::cli;
using op::HostTensor;

namespace {

onnx::DataValue value_of(HostTensor tensor) { return {onnx::DataValue::Kind::tensor, {std::move(tensor)}}; }

Result<onnx::DataValue> read_source(const std::string& source, const onnx::ValueInfo& input) {
  if (auto tensor = TESSERA_TRY(read_tensor(source, input.name))) return value_of(*std::move(tensor));
  return onnx::read_value(source, input.type);
}

/// Every --dim must name a size that is open.
Result<void> check_sizes(const GivenSizes& sizes, std::span<const onnx::ValueInfo* const> inputs) {
  for (const auto& [name, size] : sizes) {
    bool is_open = false;
    for (const onnx::ValueInfo* input : inputs) {
      if (!input->type.shape) continue;
      for (std::size_t axis = 0; axis < input->type.shape->size(); ++axis) {
        const onnx::DeclaredDim& dim = (*input->type.shape)[axis];
        const auto* symbol = std::get_if<std::string>(&dim);
        const bool is_named = (symbol != nullptr && *symbol == name) || cat(input->name, ":", axis) == name;
        is_open = is_open || (is_named && std::get_if<std::int64_t>(&dim) == nullptr);
      }
    }
    if (!is_open) return wrong("--dim: no input has an open size ", onnx::shown(name));
  }
  return {};
}

Result<op::Extents> random_shape(const onnx::ValueInfo& input, const GivenSizes& sizes) {
  op::Extents out;
  if (input.type.kind != onnx::DeclaredType::Kind::tensor || !input.type.dtype || !input.type.shape)
    return Error(ErrorCode::unsupported, cat("--random: input ", onnx::shown(input.name), " is ",
                                             onnx::to_text(input.type), ", which says no dtype and rank"));
  for (const onnx::DeclaredDim& dim : *input.type.shape) {
    const auto* name = std::get_if<std::string>(&dim);
    auto at = sizes.find(cat(input.name, ":", out.size()));
    if (at == sizes.end() && name != nullptr) at = sizes.find(*name);
    if (const auto* size = std::get_if<std::int64_t>(&dim))
      out.push_back(*size);
    else if (at != sizes.end())
      out.push_back(at->second);
    else
      return wrong("--random: axis ", out.size(), " of input ", onnx::shown(input.name), " (",
                   onnx::to_text(input.type), ") has no size: give --dim ",
                   name == nullptr ? cat(printable(input.name), ":", out.size()) : printable(*name), "=SIZE");
  }
  return out;
}

Result<onnx::DataValue> random_value(const onnx::ValueInfo& input, const GivenSizes& sizes,
                                     std::mt19937_64& random) {
  const op::Extents shape = TESSERA_TRY(random_shape(input, sizes));
  return value_of(TESSERA_TRY(random_tensor(*input.type.dtype, shape, random)));
}

}  // namespace

Result<std::vector<onnx::DataValue>> tessera::cli::model_inputs(const onnx::Model& model,
                                                                const TensorSourceOptions& options) {
  const auto inputs = onnx::required_inputs(model);
  std::vector<std::string> names;
  for (const onnx::ValueInfo* input : inputs) names.push_back(input->name);
  const auto found = TESSERA_TRY(sources_of(names, options.inputs));
  const GivenSizes sizes = TESSERA_TRY(sizes_from(options.dims));
  TESSERA_TRY(check_sizes(sizes, inputs));
  std::mt19937_64 random(options.random.value_or(0));
  std::vector<onnx::DataValue> out;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (found[i].empty() && !options.random)
      return wrong("there is no --input for ", onnx::shown(inputs[i]->name), "; --random SEED makes one up");
    out.push_back(TESSERA_TRY(found[i].empty() ? random_value(*inputs[i], sizes, random)
                                               : read_source(found[i], *inputs[i])));
  }
  return out;
}
