#include "cli/program_file.h"

#include "cli/compile_description.h"
#include "cli/files.h"
#include "cli/ir_text.h"
#include "tessera/base/text.h"
#include "tessera/engine/devices.h"
#include "tessera/engine/graph_package.h"
#include "tessera/ir/parse.h"
#include "tessera/plan/package.h"

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

Result<ProgramFile> tessera::cli::open_program(const std::string& path) {
  const bool is_file = path != "-";
  if (is_file && plan::is_package(path)) return ProgramFile{path, FileKind::plan, {}};
  if (is_file && engine::is_graph(path)) return ProgramFile{path, FileKind::graph, {}};
  if (is_onnx_name(path)) return ProgramFile{path, FileKind::model, {}};
  ProgramFile out{path, FileKind::text, {}};
  out.content = TESSERA_TRY(read_text(path));
  const std::size_t first = out.content.find_first_not_of(" \t\r\n");
  if (begins_plan(out.content))
    out.kind = engine::begins_graph(out.content) ? FileKind::graph : FileKind::plan;
  else if (path.ends_with(".json") || (first != std::string::npos && out.content[first] == '{'))
    out.kind = FileKind::description;
  return out;
}

namespace {

/// Of a plan that came on standard input.
Bytes bytes_of(const ProgramFile& file) {
  return Bytes::copy(std::as_bytes(std::span(file.content.data(), file.content.size())));
}

}  // namespace

Result<plan::Package> tessera::cli::read_plan(const ProgramFile& file) {
  return file.content.empty() ? plan::load(file.path) : plan::from_bytes(bytes_of(file), shown(file.path));
}

Result<engine::GraphPackage> tessera::cli::read_graph(const ProgramFile& file) {
  return file.content.empty() ? engine::load_graph(file.path)
                              : engine::graph_from_bytes(bytes_of(file), shown(file.path));
}

Result<void> tessera::cli::check_choice(const ProgramFile& file, const FunctionChoice& choice) {
  if (choice.name.empty() || file.kind == FileKind::text) return {};
  const std::string_view what = file.kind == FileKind::model         ? "a model"
                                : file.kind == FileKind::description ? "a graph description"
                                                                     : "a plan";
  return Error(ErrorCode::invalid_argument, cat("--function: ", what, " is one function"));
}

Result<NamedProgram> tessera::cli::read_program(const ProgramFile& file, const FunctionChoice& choice) {
  TESSERA_TRY(check_choice(file, choice));
  if (file.kind == FileKind::model) return read_onnx_program(file.path);
  if (file.kind == FileKind::description) return read_description_program(file);
  if (file.kind == FileKind::plan || file.kind == FileKind::graph)
    return Error(ErrorCode::invalid_argument, "this is a compiled plan: 'tessera run' runs it",
                 {shown(file.path), 0, 0});
  TESSERA_TRY(check_ir_text(file.path, file.content));
  const ir::NodeRef node = TESSERA_TRY(parse_ir_text(file.path, file.content));
  std::vector<ir::FunctionRef> functions;
  if (const auto* function = ir::as<ir::Function>(node)) functions.emplace_back(function);
  if (const auto* module = ir::as<ir::Module>(node)) functions = module->functions;
  if (functions.empty())
    return Error(ErrorCode::invalid_argument, cat(shown(file.path), ": expected a function or a module"));
  NamedProgram out;
  out.functions.push_back(TESSERA_TRY(chosen(functions, choice, file.path)));
  return out;
}

Result<std::shared_ptr<runtime::Device>> tessera::cli::chosen_device(const std::string& name) {
  if (name.empty()) return engine::default_device();
  return engine::find_device(name);
}

std::string tessera::cli::device_option_text(std::string_view what) {
  return cat(what, "one of ", join(engine::device_names(), ", "),
             "; else what TESSERA_DEVICE says, or the cpu");
}
