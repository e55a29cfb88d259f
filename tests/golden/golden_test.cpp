// One pass, or the whole pipeline, on one function; of those behind functions, the parts, the plan or the
// memory of the function.
// PASS.what.txt has options (`# floats=fast`, `# takes=none`), the function as text, a line `----`, and what
// the pass makes of it. With TESSERA_UPDATE=1 the results are written anew, to be read before they are
// committed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tessera/compile/pipeline.h"
#include "tessera/compile/plan_function.h"
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

const compiler::Pass& pass_named(const std::string& name) {
  for (const compiler::Pass& pass : compiler::all_passes())
    if (pass.name == name) return pass;
  throw Exception(Error(ErrorCode::not_found, cat("no pass '", name, "'")));
}

ir::FunctionRef result_of(const std::string& name, const ir::FunctionRef& function,
                          const compiler::PassOptions& options) {
  if (name == "pipeline")
    return value_or_throw(compiler::run_passes(function, {.passes = options, .verify = true})).function;
  compiler::PassContext context(options);
  return value_or_throw(std::get<compiler::PassFunction>(pass_named(name).run)(function, context));
}

/// What a pass over functions makes of one.
std::string function_after(const std::string& pass, const ir::FunctionRef& function,
                           const compiler::PassOptions& options) {
  const ir::FunctionRef after = result_of(pass, function, options);
  for (const Error& error : op::validate(*after)) ADD_FAILURE() << error.to_text();
  EXPECT_EQ(result_of(pass, after, options), after) << "not idempotent";
  return ir::print(*after);
}

/// What a pass makes of the function as it is written: tiled into kernels of fused regions, lowered, and laid
/// out for symbols that are 8. Every pass before it but tiling and lowering is left out; all are verified.
std::string stage_after(const compiler::Pass& pass, const ir::FunctionRef& function,
                        const compiler::PassOptions& options) {
  std::string out, before;
  compiler::PlanOptions how{.pipeline = {.passes = options, .verify = true}};
  for (const std::string_view name : compiler::optional_pass_names())
    if (name != "tile" && name != pass.name) how.pipeline.disabled.emplace_back(name);
  how.pipeline.sizes = [](const auto& dims) { return std::vector<std::int64_t>(dims.size(), 8); };
  how.pipeline.after = [&](const compiler::Pass& ran, const compiler::Stage& stage) {
    if (ran.name == pass.name) out = compiler::to_text(stage);
    if (const auto* run = std::get_if<compiler::PlanPass>(&ran.run);
        run != nullptr && ran.name == pass.name) {
      plan::Plan again = *stage.plan;
      EXPECT_EQ((*run)(again), 0U) << "not idempotent";
    }
    if (ran.name == "lower") before = plan::to_text(*stage.plan);
  };
  const pattern::Target target{.name = "test", .sources = {compiler::fused_regions()}};
  const auto planned = value_or_throw(compiler::plan_function(function, target, how));
  for (const compiler::PassReport& report : planned.passes)
    if (report.name == pass.name && std::holds_alternative<compiler::PlanPass>(pass.run)) {
      EXPECT_EQ(report.changed, out != before);
    }
  return out;
}

std::string text_after(const std::string& name, const ir::FunctionRef& function,
                       const compiler::PassOptions& options) {
  if (name == "pipeline") return function_after(name, function, options);
  const compiler::Pass& pass = pass_named(name);
  return std::holds_alternative<compiler::PassFunction>(pass.run) ? function_after(name, function, options)
                                                                  : stage_after(pass, function, options);
}

TEST(Golden, EveryPassHasAFile) {
  for (const std::string_view pass : compiler::pass_names()) {
    const auto all = files();
    EXPECT_TRUE(std::any_of(all.begin(), all.end(), [&](const fs::path& path) {
      return path.filename().string().starts_with(cat(pass, "."));
    })) << pass;
  }
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
    const std::string after = text_after(name.substr(0, name.find('.')), function, options_in(before));
    if (update) {
      std::ofstream(path) << before << rule << after;
    } else {
      EXPECT_EQ(after, text.substr(cut + rule.size()));
    }
  }
}

}  // namespace
