#include "tessera/plan/plan.h"

#include <algorithm>

#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::plan;

namespace {

/// %3, in0, p1, c2 or the size itself.
std::string name_of(const Plan& plan, ValueId id) {
  const Value& value = plan.values[id];
  switch (value.kind) {
    case ValueKind::input:
      return cat("in", value.index);
    case ValueKind::parameter:
      return cat("p", value.index);
    case ValueKind::constant:
      return cat("c", value.index);
    case ValueKind::size:
      return cat("[", value.size, "]");
    case ValueKind::computed:
      return cat("%", id);
  }
  return "?";
}

std::string names_of(const Plan& plan, const std::vector<ValueId>& ids) {
  std::string out;
  for (const ValueId id : ids) out += cat(out.empty() ? "" : ", ", name_of(plan, id));
  return out;
}

}  // namespace

std::string_view Step::name() const {
  switch (kind) {
    case StepKind::call:
      return card->name;
    case StepKind::function:
    case StepKind::library:
      return function->name;
    case StepKind::copy:
      return "copy";
    case StepKind::kernel:
      return "kernel";
  }
  return "?";
}

std::string plan::to_text(const Plan& plan) {
  std::string out = "plan(";
  for (std::size_t i = 0; i < plan.inputs.size(); ++i)
    out += cat(i == 0 ? "" : ", ", "in", i, ": ", plan.values[plan.inputs[i]].type);
  out += ")\n";
  for (const Step& step : plan.steps) {
    out += cat("  ", names_of(plan, step.results), " = ", step.name(), "(", names_of(plan, step.inputs), ")");
    if (!step.results.empty()) out += cat(" : ", plan.values[step.results[0]].type);
    for (const InPlace& pair : step.in_place)
      out += cat(", ", name_of(plan, step.results[pair.result]), " over ",
                 name_of(plan, step.inputs[pair.input]));
    out += "\n";
    if (step.kind != StepKind::kernel && step.kind != StepKind::library) continue;
    for (const auto& statement : step.function->body)
      if (const auto* call = ir::as<ir::Call>(*statement->value)) out += cat("      ", call->op, "\n");
  }
  return cat(out, "  return ", names_of(plan, plan.outputs), "\n");
}

std::vector<std::vector<StepId>> plan::dependencies(const Plan& plan) {
  std::vector<std::vector<StepId>> out(plan.steps.size());
  for (StepId s = 0; s < plan.steps.size(); ++s) {
    for (const ValueId input : plan.steps[s].inputs)
      if (plan.values[input].kind == ValueKind::computed) out[s].push_back(plan.values[input].index);
    std::sort(out[s].begin(), out[s].end());
    out[s].erase(std::unique(out[s].begin(), out[s].end()), out[s].end());
  }
  return out;
}

std::vector<std::uint32_t> plan::levels(const Plan& plan) {
  std::vector<std::uint32_t> out(plan.steps.size(), 0);
  for (StepId s = 0; s < plan.steps.size(); ++s)
    for (const ValueId input : plan.steps[s].inputs)
      if (plan.values[input].kind == ValueKind::computed)
        out[s] = std::max(out[s], out[plan.values[input].index] + 1);
  return out;
}
