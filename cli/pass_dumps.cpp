#include "cli/pass_dumps.h"

#include <algorithm>
#include <cstdio>

#include "tessera/base/text.h"

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

bool PassDumps::want_plan() const {
  const auto of_functions = compiler::function_passes();
  return std::any_of(wanted_.begin(), wanted_.end(), [&](const std::string& name) {
    return std::none_of(of_functions.begin(), of_functions.end(),
                        [&](const compiler::Pass& pass) { return pass.name == name; });
  });
}

void PassDumps::follow(compiler::PipelineOptions& pipeline) {
  if (wanted_.empty()) return;
  pipeline.after = [this](const compiler::Pass& pass, const compiler::Stage& after) {
    if (std::find(wanted_.begin(), wanted_.end(), pass.name) == wanted_.end()) return;
    dumps_.emplace_back(about_.empty() ? std::string(pass.name) : cat(pass.name, ", ", about_),
                        compiler::to_text(after));
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
