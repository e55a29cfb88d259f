// One pass, or the whole pipeline, on one function. PASS.what.txt has options (`# floats=fast`, `#
// takes=none`), the function as text, a line `----`, and what the pass makes of it. With TESSERA_UPDATE=1 the
// results are written anew, to be read before they are committed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tessera/compile/pipeline.h"
#include "tessera/ir/parse.h"
#include "tessera/ir/print.h"
#include "tessera/ir/structural_equal.h"
#include "tessera/op/validate.h"

using namespace tessera;
namespace fs = std::filesystem;

namespace {

constexpr std::string_view rule = "----\n";

std::vector<fs::path> files() {
  std::vector<fs::path> out;
  for (const auto& entry : fs::directory_iterator(TESSERA_SOURCE_DIR "/tests/golden"))
    if (entry.path().extension() == ".txt") out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

compiler::PassOptions options_in(const std::string& text) {
  compiler::PassOptions out;
  const auto says = [&](const char* what) { return text.find(what) != std::string::npos; };
  if (says("# floats=exact\n")) out.floats = compiler::FloatRules::exact;
  if (says("# floats=fast\n")) out.floats = compiler::FloatRules::fast;
  if (says("# takes=none\n")) out.takes = [](const op::CallInfo&) { return false; };
  return out;
}

/// The function a text describes: the last one of several.
ir::FunctionRef function_in(const std::string& text) {
  const ir::NodeRef node = value_or_throw(ir::parse(text));
  if (const auto* module = ir::as<ir::Module>(node)) return module->functions.back();
  return ir::FunctionRef(ir::as<ir::Function>(node));
}

ir::FunctionRef result_of(const std::string& name, const ir::FunctionRef& function,
                          const compiler::PassOptions& options) {
  if (name == "pipeline")
    return value_or_throw(compiler::run_passes(function, {.passes = options, .verify = true})).function;
  for (const compiler::Pass& pass : compiler::all_passes()) {
    if (pass.name != name) continue;
    compiler::PassContext context(options);
    return value_or_throw(pass.run(function, context));
  }
  throw Exception(Error(ErrorCode::not_found, cat("no pass '", name, "'")));
}

TEST(Golden, PassesWriteWhatTheyShould) {
  const bool update = std::getenv("TESSERA_UPDATE") != nullptr;
  ASSERT_GE(files().size(), 10U);
  for (const fs::path& path : files()) {
    SCOPED_TRACE(path.filename());
    std::ostringstream content;
    content << std::ifstream(path).rdbuf();
    const std::string text = content.str();
    const std::size_t cut = text.find(rule);
    ASSERT_TRUE(update || cut != std::string::npos);
    const std::string before = text.substr(0, cut), name = path.filename();
    const ir::FunctionRef function = function_in(before);
    for (const Error& error : op::validate(*function)) ADD_FAILURE() << error.to_text();
    const auto options = options_in(before);
    const ir::FunctionRef after = result_of(name.substr(0, name.find('.')), function, options);
    for (const Error& error : op::validate(*after)) ADD_FAILURE() << error.to_text();
    if (update) {
      std::ofstream(path) << before << rule << ir::print(*after);
    } else {
      EXPECT_EQ(ir::print(*after), text.substr(cut + rule.size()));
    }
    EXPECT_EQ(result_of(name.substr(0, name.find('.')), after, options), after) << "not idempotent";
  }
}

}  // namespace
