#include "tessera/engine/report.h"

#include <cstdio>
#include <utility>

#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::engine;

namespace {

std::string microseconds(std::uint64_t nanoseconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f us", static_cast<double>(nanoseconds) / 1000);
  return text;
}

}  // namespace

void ComponentReport::clear() {
  program.clear();
  ops = 0;
  tier = Tier::streamed;
  cause.clear();
  driven.clear();
  nanoseconds = kernels = views = 0;
  if (!missed.ops.empty() || !missed.inputs.empty()) missed = {};
}

void ComponentReport::swap(ComponentReport& other) noexcept {
  if (!program.empty() || !other.program.empty()) program.swap(other.program);
  std::swap(ops, other.ops);
  std::swap(tier, other.tier);
  if (!cause.empty() || !other.cause.empty()) cause.swap(other.cause);
  if (!driven.empty() || !other.driven.empty()) driven.swap(other.driven);
  std::swap(nanoseconds, other.nanoseconds);
  std::swap(kernels, other.kernels);
  std::swap(views, other.views);
  missed.ops.swap(other.missed.ops);
  missed.inputs.swap(other.missed.inputs);
}

std::string tessera::engine::to_line(const EvaluationReport& report) {
  std::string out = cat("evaluation ", report.number, ":");
  for (std::size_t i = 0; i < report.components.size(); ++i) {
    const ComponentReport& component = report.components[i];
    out += cat(i == 0 ? " " : " | ", component.program, component.program.empty() ? "" : ": ",
               component.tier == Tier::streamed ? "" : "plan ", to_string(component.tier), " ", component.ops,
               component.ops == 1 ? " op " : " ops ", microseconds(component.nanoseconds));
    if (!component.cause.empty()) out += cat(" (", component.cause, ")");
    if (!component.driven.empty()) out += cat(" [the host drives ", component.driven, "]");
  }
  return out;
}
