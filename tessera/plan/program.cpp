#include "tessera/plan/program.h"

#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::plan;

namespace {

std::string place(const ir::Span& span) {
  const SourceSpan at = span.resolve();
  return at.known() ? cat(" at ", at.to_text()) : "";
}

/// Results that are held by an upper bound: of calls whose sizes depend on data.
void add_bounded(const Plan& plan, std::vector<std::string>& out) {
  for (const Step& step : plan.steps) {
    if (step.card == nullptr || !step.card->traits.data_dependent || step.results.empty()) continue;
    out.push_back(cat(step.card->name, place(step.span), ": by upper bound, ",
                      plan.values[step.results[0]].type, " with a count beside it"));
  }
}

/// Whether a part before this one learned the size too.
bool is_known_before(const Program& program, std::size_t p, const Source& from) {
  for (std::size_t before = 0; before < p; ++before)
    for (const LearnedSize& size : program.parts[before].learned)
      if (size.from == from) return true;
  return false;
}

}  // namespace

const op::ValueType& Program::type_of(const Source& source) const {
  if (source.part == Source::caller) return inputs[source.index];
  const Plan& plan = *parts[source.part].plan;
  return plan.values[plan.outputs[source.index]].type;
}

Program plan::program_of(PlanRef plan) {
  Program out{.dims = plan->dims, .inputs = {}, .parts = {}, .outputs = {}, .parameters = plan->parameters};
  Part part;
  for (std::uint32_t i = 0; i < plan->inputs.size(); ++i) {
    out.inputs.push_back(plan->values[plan->inputs[i]].type);
    part.inputs.push_back({.part = Source::caller, .index = i});
  }
  for (std::uint32_t i = 0; i < plan->outputs.size(); ++i) out.outputs.push_back({.part = 0, .index = i});
  part.plan = std::move(plan);
  out.parts.push_back(std::move(part));
  return out;
}

std::vector<std::string> plan::data_dependent_sizes(const Program& program) {
  std::vector<std::string> out;
  for (std::size_t p = 0; p < program.parts.size(); ++p) {
    const Part& part = program.parts[p];
    for (std::size_t i = 0; i < part.learned.size(); ++i) {
      const LearnedSize& size = part.learned[i];
      if (is_known_before(program, p, size.from)) continue;
      const std::string name = printable(part.plan->dims[program.dims.size() + i]->name);
      if (size.from.part == Source::caller)
        out.push_back(cat("the size '", name, "' is the value of input ", size.from.index));
      else
        out.push_back(
            cat("cut", place(size.at), ": the host learns the size '", name, "' before part ", p + 1));
    }
    add_bounded(*part.plan, out);
  }
  return out;
}
