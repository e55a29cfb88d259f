#include <cstdio>

#include "cli/command.h"
#include "cli/compile_options.h"
#include "cli/pass_report.h"
#include "cli/program_file.h"

using namespace tessera;
using namespace tessera::cli;

namespace {

Result<Answer> run_explain(const CompileOptions& options) {
  const NamedProgram program = TESSERA_TRY(read_program(options.file));
  const auto outcome = TESSERA_TRY(compiler::run_passes(program.function, pipeline_options(options)));
  if (options.json) {
    JsonWriter json(JsonWriter::Style::indented);
    json.begin_object();
    write_passes(json, outcome);
    std::printf("%s\n", json.end_object().text().c_str());
  } else {
    const std::string text = pass_text(outcome);
    std::fwrite(text.data(), 1, text.size(), stdout);
  }
  return Answer::yes;
}

}  // namespace

void tessera::cli::add_explain(Commands& commands) {
  auto options = std::make_shared<CompileOptions>();
  CLI::App& command =
      commands.add("explain", "say what each pass of the compiler did to a function, and where",
                   "  tessera explain examples/ir/mlp.tsr\n"
                   "  tessera explain model.onnx --json",
                   [options] { return run_explain(*options); });
  add_options(command, *options);
}
