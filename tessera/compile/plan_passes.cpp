#include "tessera/compile/plan_passes.h"

#include <algorithm>
#include <chrono>

#include "tessera/compile/order_steps.h"
#include "tessera/compile/reuse_in_place.h"

using namespace tessera;
using namespace tessera::compiler;

namespace {

// clang-format off
constexpr PlanPass known_plan_passes[] = {
    {"order_steps",    "an order of the steps that needs less memory",     order_steps},
    {"reuse_in_place", "results that take the memory of a dying input",    reuse_in_place},
};
// clang-format on

PassReport run(const PlanPass& pass, plan::Plan& plan, const PipelineOptions& options) {
  PassReport out{.name = pass.name, .unit = "steps"};
  out.statements_before = out.statements_after = plan.steps.size();
  out.ran = !is_disabled(options, pass.name);
  if (!out.ran) return out;
  const auto begin = std::chrono::steady_clock::now();
  out.rewrites = pass.run(plan);
  const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - begin;
  out.microseconds = time.count();
  out.changed = out.rewrites != 0;
  if (options.after_plan) options.after_plan(pass.name, plan);
  return out;
}

}  // namespace

std::span<const PlanPass> compiler::plan_passes() { return known_plan_passes; }

void compiler::run_plan_passes(plan::Plan& plan, const PipelineOptions& options,
                               std::vector<PassReport>& reports) {
  for (const PlanPass& pass : known_plan_passes) reports.push_back(run(pass, plan, options));
}
