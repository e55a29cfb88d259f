#include "cli/program_file.h"
#include "tessera/onnx/import.h"

using namespace tessera;
using namespace tessera::cli;

Result<NamedProgram> tessera::cli::read_onnx_program(const std::string& path) {
  const onnx::Model model = TESSERA_TRY(onnx::read_model(path));
  TESSERA_TRY(onnx::check_operators(model));
  NamedProgram out;
  out.function = TESSERA_TRY(onnx::import_function(model));
  for (const onnx::ValueInfo& output : model.graph.outputs) out.outputs.push_back(output.name);
  return out;
}
