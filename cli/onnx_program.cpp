#include "cli/program_file.h"
#include "tessera/model/model_package.h"

using namespace tessera;
using namespace tessera::cli;

Result<NamedProgram> tessera::cli::read_onnx_program(const std::string& path) {
  const onnx::Model model = TESSERA_TRY(onnx::read_model(path));
  TESSERA_TRY(onnx::check_operators(model));
  auto variants = TESSERA_TRY(onnx::import_variants(model, plan::most_flags));
  NamedProgram out{.functions = std::move(variants.functions)};
  out.names = package_options(model, variants.flags);
  return out;
}

Result<op::HostTensor> tessera::cli::read_tensor_proto(const std::string& path) {
  onnx::DeclaredType type;
  type.kind = onnx::DeclaredType::Kind::tensor;
  onnx::DataValue value = TESSERA_TRY(onnx::read_value(path, type));
  if (value.kind != onnx::DataValue::Kind::tensor)
    return Error(ErrorCode::invalid_argument, "expected a tensor", {path, 0, 0});
  return std::move(value.tensors[0]);
}
