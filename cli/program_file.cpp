#include "cli/program_file.h"

#include "cli/compile_description.h"
#include "cli/files.h"
#include "tessera/base/text.h"
#include "tessera/ir/parse.h"

using namespace tessera;
using namespace tessera::cli;

namespace {

Result<ir::FunctionRef> chosen(std::span<const ir::FunctionRef> functions, const FunctionChoice& choice,
                               const std::string& path) {
  std::vector<std::string> names;
  for (const ir::FunctionRef& function : functions) {
    if (!choice.name.empty() && function->name == choice.name) return function;
    names.push_back(printable(function->name));
  }
  if (choice.name.empty() && (functions.size() == 1 || choice.last_of_several)) return functions.back();
  const std::string problem = choice.name.empty()
                                  ? cat("has ", functions.size(), " functions, say which by --function NAME")
                                  : cat("has no function '", printable(choice.name), "'");
  return Error(ErrorCode::invalid_argument,
               cat(shown(path), " ", problem, ": ", shortened(join(names, ", "), 300)));
}

}  // namespace

bool tessera::cli::is_onnx_name(const std::string& path) {
  constexpr std::string_view onnx = ".onnx";
  return path.size() > onnx.size() && path.compare(path.size() - onnx.size(), onnx.size(), onnx) == 0;
}

Result<NamedProgram> tessera::cli::read_program(const std::string& path, const FunctionChoice& choice) {
  if (is_onnx_name(path) && choice.name.empty()) return read_onnx_program(path);
  if (is_onnx_name(path)) return Error(ErrorCode::invalid_argument, "--function: a model is one function");
  if (is_description(path)) return read_description_program(path);
  const std::string text = TESSERA_TRY(read_ir_text(path));
  const ir::NodeRef node = TESSERA_TRY(ir::parse(text, {.file = shown(path)}));
  std::vector<ir::FunctionRef> functions;
  if (const auto* function = ir::as<ir::Function>(node)) functions.emplace_back(function);
  if (const auto* module = ir::as<ir::Module>(node)) functions = module->functions;
  if (functions.empty())
    return Error(ErrorCode::invalid_argument, cat(shown(path), ": expected a function or a module"));
  return NamedProgram{.function = TESSERA_TRY(chosen(functions, choice, path))};
}
