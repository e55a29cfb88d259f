#include "cli/pass_dumps.h"

#include <algorithm>
#include <cstdio>

#include "tessera/base/text.h"
#include "tessera/ir/print.h"
#include "tessera/plan/plan.h"

using namespace tessera;
using namespace tessera::cli;

Result<void> PassDumps::want(std::vector<std::string> passes) {
  for (const std::string& name : passes) {
    const auto known = compiler::check_pass_name(name);
    if (!known) return Error(known.error().code(), cat("--dump-after: ", known.error().message()));
  }
  wanted_ = std::move(passes);
  return {};
}

void PassDumps::note(std::string_view wanted, std::string_view shown, std::string text) {
  if (std::find(wanted_.begin(), wanted_.end(), wanted) == wanted_.end()) return;
  dumps_.emplace_back(about_.empty() ? std::string(shown) : cat(shown, ", ", about_), std::move(text));
}

void PassDumps::follow(compiler::PipelineOptions& pipeline) {
  if (wanted_.empty()) return;
  pipeline.after = [this](const compiler::Pass& pass, const ir::Function& after) {
    note(pass.name, pass.name, ir::print(after));
  };
  // Tiling makes the first plan.
  pipeline.after_plan = [this](std::string_view pass, const plan::Plan& after) {
    note(pass == "lower" ? "tile" : pass, pass, plan::to_text(after));
  };
}

void PassDumps::print() const {
  for (const auto& [name, text] : dumps_) std::printf("# after %s\n%s\n", name.c_str(), text.c_str());
}

void PassDumps::write(JsonWriter& json) const {
  json.key("dumps").begin_array();
  for (const auto& [name, text] : dumps_)
    json.begin_object().member("after", name).member("function", text).end_object();
  json.end_array();
}
