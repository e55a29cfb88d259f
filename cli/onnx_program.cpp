#include "cli/program_file.h"
#include "tessera/onnx/import.h"

using namespace tessera;

Result<ir::FunctionRef> tessera::cli::read_onnx_program(const std::string& path) {
  const onnx::Model model = TESSERA_TRY(onnx::read_model(path));
  TESSERA_TRY(onnx::check_operators(model));
  return onnx::import_function(model);
}
