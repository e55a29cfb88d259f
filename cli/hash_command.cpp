#include <cstdio>

#include "cli/command.h"
#include "cli/files.h"
#include "cli/ir_text.h"
#include "tessera/base/json.h"
#include "tessera/ir/parse.h"
#include "tessera/ir/structural_hash.h"

using namespace tessera;
using namespace tessera::cli;

void tessera::cli::add_hash(Commands& commands) {
  struct Options {
    std::string file;
    bool mapping = false;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  const auto run = [options]() -> Result<Answer> {
    const std::string text = TESSERA_TRY(read_ir_text(options->file));
    const auto node = TESSERA_TRY(parse_ir_text(options->file, text));
    const auto mode = options->mapping ? ir::CompareMode::mapping : ir::CompareMode::strict;
    const std::string hash = ir::structural_hash(*node, mode).to_hex();
    if (options->json)
      std::printf("{\"hash\":\"%s\",\"mode\":\"%s\"}\n", hash.c_str(),
                  options->mapping ? "mapping" : "strict");
    else
      std::printf("%s\n", hash.c_str());
    return Answer::yes;
  };
  CLI::App& command = commands.add(
      "hash", "print the structural hash of an IR text",
      "  tessera hash examples/ir/mlp.tsr\n"
      "  echo 'free x expr x + 1' | tessera hash --mapping -     the same for any names of free variables",
      run);
  command.add_option("FILE", options->file, "the text, - for standard input")->required();
  command.add_flag("--mapping", options->mapping, "number free variables in the order they are met");
  command.add_flag("--json", options->json, "answer as JSON");
}
