#include "cli/model_inputs.h"

#include <map>

using namespace tessera;
using namespace tessera::cli;
using op::HostTensor;

namespace {

/// Declared types, with a symbol for each size that has a name, and for each that has neither name nor
/// number.
class Declared {
 public:
  void add(const onnx::ValueInfo& input) {
    InputSpecs::Input& spec =
        specs_.inputs.emplace_back(InputSpecs::Input{input.name, {}, onnx::to_text(input.type)});
    if (input.type.kind != onnx::DeclaredType::Kind::tensor || !input.type.dtype || !input.type.shape) return;
    spec.type = op::ValueType{.dtype = *input.type.dtype, .shape = {}};
    for (const onnx::DeclaredDim& dim : *input.type.shape) {
      const auto* size = std::get_if<std::int64_t>(&dim);
      const auto* name = std::get_if<std::string>(&dim);
      const std::string symbol = name == nullptr ? cat(input.name, ":", spec.type->rank()) : *name;
      spec.type->shape.push_back(size != nullptr ? op::Dim(*size) : op::Dim(size_called(symbol)));
    }
  }

  [[nodiscard]] InputSpecs take() { return std::move(specs_); }

 private:
  Ref<ir::Var> size_called(const std::string& name) {
    auto& symbol = symbols_[name];
    if (symbol == nullptr) {
      symbol = ir::size_symbol(name);
      specs_.dims.push_back(symbol);
    }
    return symbol;
  }

  InputSpecs specs_;
  std::map<std::string, Ref<ir::Var>> symbols_;
};

}  // namespace

Result<std::vector<onnx::DataValue>> tessera::cli::model_inputs(const onnx::Model& model,
                                                                const TensorSourceOptions& options) {
  using Kind = onnx::DataValue::Kind;
  const auto inputs = onnx::required_inputs(model);
  Declared declared;
  for (const onnx::ValueInfo* input : inputs) declared.add(*input);
  std::vector<onnx::DataValue> out(inputs.size());
  std::vector<bool> is_read(inputs.size());
  const auto read_value = [&](const std::string& source, std::size_t i) -> Result<std::optional<HostTensor>> {
    out[i] = TESSERA_TRY(onnx::read_value(source, inputs[i]->type));
    is_read[i] = true;
    if (out[i].kind != Kind::tensor) return std::optional<HostTensor>();
    return std::optional(out[i].tensors[0]);
  };
  const InputSpecs specs = declared.take();
  auto tensors = TESSERA_TRY(read_inputs(specs, options, read_value));
  for (std::size_t i = 0; i < out.size(); ++i)
    if (!is_read[i]) out[i] = {Kind::tensor, {std::move(tensors[i])}};
  return out;
}
