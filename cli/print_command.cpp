#include <cstdio>

#include "cli/command.h"
#include "cli/files.h"
#include "cli/ir_text.h"
#include "tessera/ir/parse.h"
#include "tessera/ir/print.h"
#include "tessera/ir/to_json.h"
#include "tessera/op/validate.h"

using namespace tessera;
using namespace tessera::cli;

void tessera::cli::add_print(Commands& commands) {
  struct Options {
    std::string file;
    bool json = false;
    bool verify = false;
  };
  auto options = std::make_shared<Options>();
  const auto run = [options]() -> Result<Answer> {
    const std::string text = TESSERA_TRY(read_ir_text(options->file));
    const auto node = TESSERA_TRY(parse_ir_text(options->file, text));
    if (options->verify) {
      const auto errors = op::validate(*node);
      for (const Error& error : errors) std::fprintf(stderr, "tessera: %s\n", error.to_text().c_str());
      if (!errors.empty()) return Answer::no;
    }
    if (options->json) {
      JsonWriter json(JsonWriter::Style::indented);
      ir::write_graph_json(json, *node);
      std::printf("%s\n", json.text().c_str());
    } else {
      const std::string out = ir::print(*node);
      std::fwrite(out.data(), 1, out.size(), stdout);
    }
    return Answer::yes;
  };
  CLI::App& command =
      commands.add("print", "print an IR text in its canonical form",
                   "  tessera print examples/ir/mlp.tsr\n"
                   "  tessera print --json examples/ir/mlp.tsr\n"
                   "  tessera print --verify examples/ir/newton.tsr   exit 1 if the code is not well formed\n"
                   "  echo 'free x: f32 expr x * 2.0 + 1.0' | tessera print -",
                   run);
  command.add_option("FILE", options->file, "the text, - for standard input")->required();
  command.add_flag("--json", options->json, "print the graph as JSON");
  command.add_flag("--verify", options->verify,
                   "check scopes, types, arity, single assignment and the calls of ops first");
}
