#include "cli/program_file.h"

#include "cli/files.h"
#include "tessera/ir/parse.h"

using namespace tessera;
using namespace tessera::cli;

bool tessera::cli::is_onnx_name(const std::string& path) {
  constexpr std::string_view onnx = ".onnx";
  return path.size() > onnx.size() && path.compare(path.size() - onnx.size(), onnx.size(), onnx) == 0;
}

Result<NamedProgram> tessera::cli::read_program(const std::string& path) {
  if (is_onnx_name(path)) return read_onnx_program(path);
  const std::string text = TESSERA_TRY(read_text(path));
  const ir::NodeRef node = TESSERA_TRY(ir::parse(text, {.file = shown(path)}));
  if (const auto* function = ir::as<ir::Function>(node))
    return NamedProgram{.function = ir::FunctionRef(function)};
  const auto* module = ir::as<ir::Module>(node);
  if (module == nullptr || module->functions.empty())
    return Error(ErrorCode::invalid_argument, cat(shown(path), ": expected a function or a module"));
  return NamedProgram{.function = module->functions.back()};
}
