// One pass, or the whole pipeline, on one function; of passes over plans, the plan of the function.
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
#include "tessera/compile/plan_passes.h"
#include "tessera/ir/parse.h"
#include "tessera/ir/print.h"
#include "tessera/ir/structural_equal.h"
#include "tessera/op/validate.h"
#include "tessera/plan/verify.h"

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

/// What a pass over functions makes of one.
std::string function_after(const std::string& pass, const ir::FunctionRef& function,
                           const compiler::PassOptions& options) {
  const ir::FunctionRef after = result_of(pass, function, options);
  for (const Error& error : op::validate(*after)) ADD_FAILURE() << error.to_text();
  EXPECT_EQ(result_of(pass, after, options), after) << "not idempotent";
  return ir::print(*after);
}

/// The plan of a function as it is written, with kernels of fused regions, after one pass over plans.
std::string plan_after(const compiler::PlanPass& pass, const ir::FunctionRef& function,
                       const compiler::PassOptions& options) {
  compiler::PlanOptions how{.pipeline = {.passes = options}};
  for (const std::string_view name : compiler::pass_names())
    if (name != "tile") how.pipeline.disabled.emplace_back(name);
  const pattern::Target target{.name = "test", .sources = {compiler::fused_regions()}};
  plan::Plan plan = *value_or_throw(compiler::plan_function(function, target, how)).plan;
  const std::string before = plan::to_text(plan);
  const bool says_changed = pass.run(plan) != 0;
  EXPECT_EQ(says_changed, plan::to_text(plan) != before);
  EXPECT_EQ(pass.run(plan), 0U) << "not idempotent";
  if (auto fine = plan::verify(plan); !fine) ADD_FAILURE() << fine.error().to_text();
  return plan::to_text(plan);
}

std::string text_after(const std::string& pass, const ir::FunctionRef& function,
                       const compiler::PassOptions& options) {
  for (const compiler::PlanPass& one : compiler::plan_passes())
    if (one.name == pass) return plan_after(one, function, options);
  return function_after(pass, function, options);
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
