#include <cstdio>

#include "cli/command.h"
#include "cli/files.h"
#include "cli/ir_text.h"
#include "tessera/base/json.h"
#include "tessera/ir/parse.h"
#include "tessera/ir/structural_equal.h"

using namespace tessera;
using namespace tessera::cli;

namespace {

struct EqualOptions {
  std::string a, b;
  bool mapping = false;
  bool json = false;
};

void print_json(const std::optional<ir::Mismatch>& mismatch) {
  JsonWriter json;
  json.begin_object().member("equal", !mismatch);
  if (mismatch) {
    json.member("path", mismatch->path).member("left", mismatch->left);
    json.member("right", mismatch->right).member("reason", mismatch->reason);
  }
  std::printf("%s\n", json.end_object().text().c_str());
}

Result<Answer> compare(const EqualOptions& options) {
  if (options.a == "-" && options.b == "-")
    return Error(ErrorCode::invalid_argument, "only one of A and B can be standard input (-)");
  ir::FreeVariables free;
  const auto read = [&](const std::string& path) -> Result<ir::NodeRef> {
    const std::string text = TESSERA_TRY(read_ir_text(path));
    return parse_ir_text(path, text, &free);
  };
  const ir::NodeRef a = TESSERA_TRY(read(options.a));
  const ir::NodeRef b = TESSERA_TRY(read(options.b));
  const auto mode = options.mapping ? ir::CompareMode::mapping : ir::CompareMode::strict;
  const auto mismatch = ir::first_mismatch(*a, *b, mode);
  if (options.json)
    print_json(mismatch);
  else if (mismatch)
    std::printf("%s\n  %s\n", mismatch->to_text().c_str(), mismatch->reason.c_str());
  else
    std::printf("equal\n");
  return mismatch ? Answer::no : Answer::yes;
}

}  // namespace

void tessera::cli::add_equal(Commands& commands) {
  auto options = std::make_shared<EqualOptions>();
  CLI::App& command =
      commands.add("equal", "compare two IR texts by structure (exit 0 equal, 1 different)",
                   "  tessera equal a.tsr b.tsr\n"
                   "  tessera equal --mapping a.tsr b.tsr     free variables are matched one to one\n"
                   "  tessera equal --json a.tsr b.tsr",
                   [options] { return compare(*options); });
  command.add_option("A", options->a, "the first text, - for standard input")->required();
  command.add_option("B", options->b, "the second text")->required();
  command.add_flag("--mapping", options->mapping,
                   "match free variables one to one instead of by name and type");
  command.add_flag("--json", options->json, "answer as JSON");
}
