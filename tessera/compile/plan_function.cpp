#include "tessera/compile/plan_function.h"

#include <chrono>

#include "tessera/compile/lower.h"
#include "tessera/compile/plan_passes.h"
#include "tessera/compile/whole_calls.h"

using namespace tessera;
using namespace tessera::compiler;

namespace {

/// Disabled, every statement is a step.
Result<TiledFunction> run_tiling(const ir::Function& function, const pattern::Target& target,
                                 const PlanOptions& options, std::vector<PassReport>& reports) {
  PassReport report{.name = "tile", .statements_before = function.body.size()};
  report.ran = !is_disabled(options.pipeline, report.name);
  const auto begin = std::chrono::steady_clock::now();
  auto out =
      TESSERA_TRY(tile(function, report.ran ? target : pattern::Target{.name = target.name}, options.tiling));
  const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - begin;
  report.microseconds = time.count();
  report.statements_after = out.parts.size();
  report.changed = report.statements_after != report.statements_before;
  report.rewrites = report.statements_before - report.statements_after;
  reports.push_back(std::move(report));
  return out;
}

}  // namespace

Result<Planned> compiler::plan_function(const ir::FunctionRef& function, const pattern::Target& target,
                                        const PlanOptions& options) {
  PipelineOptions pipeline = options.pipeline;
  // A device with tiles has none for composites that are no kernel: their parts are tiled.
  const bool may_round = pipeline.passes.floats != FloatRules::exact;
  if (!pipeline.passes.takes && !target.sources.empty() && may_round) pipeline.passes.takes = stays_whole;
  if (target.reads_narrow_factors) pipeline.passes.keeps_narrow_factors = true;
  Outcome outcome = TESSERA_TRY(run_passes(function, pipeline));
  const TiledFunction tiled = TESSERA_TRY(run_tiling(*outcome.function, target, options, outcome.passes));
  plan::Plan plan = TESSERA_TRY(lower(*outcome.function, tiled));
  if (options.pipeline.after_plan) options.pipeline.after_plan("lower", plan);
  run_plan_passes(plan, options.pipeline, outcome.passes);
  Planned out{.plan = std::make_shared<const plan::Plan>(std::move(plan)),
              .function = outcome.function,
              .passes = std::move(outcome.passes),
              .tile_cost = tiled.cost,
              .tile_bound = tiled.bound,
              .is_optimal = tiled.is_optimal};
  return out;
}
