#include "tessera/engine/report.h"

#include <cstdio>

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

std::string tessera::engine::to_line(const EvaluationReport& report) {
  std::string out = cat("evaluation ", report.number, ":");
  for (std::size_t i = 0; i < report.components.size(); ++i) {
    const ComponentReport& component = report.components[i];
    out +=
        cat(i == 0 ? " " : " | ", component.tier == Tier::streamed ? "" : "plan ", to_string(component.tier),
            " ", component.ops, component.ops == 1 ? " op " : " ops ", microseconds(component.nanoseconds));
    if (!component.cause.empty()) out += cat(" (", component.cause, ")");
    if (!component.driven.empty()) out += cat(" [the host drives ", component.driven, "]");
  }
  return out;
}
