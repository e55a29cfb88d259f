#include "tessera/compile/plan_function.h"

#include "tessera/compile/lower.h"
#include "tessera/compile/whole_calls.h"

using namespace tessera;
using namespace tessera::compiler;

Result<Planned> compiler::plan_function(const ir::FunctionRef& function, const pattern::Target& target,
                                        const PlanOptions& options) {
  PipelineOptions pipeline = options.pipeline;
  // A device with tiles has none for composites that are no kernel: their parts are tiled.
  const bool may_round = pipeline.passes.floats != FloatRules::exact;
  if (!pipeline.passes.takes && !target.sources.empty() && may_round) pipeline.passes.takes = stays_whole;
  Outcome outcome = TESSERA_TRY(run_passes(function, pipeline));
  const TiledFunction tiled = TESSERA_TRY(tile(*outcome.function, target, options.tiling));
  Planned out{.plan = TESSERA_TRY(lower(*outcome.function, tiled)),
              .function = outcome.function,
              .passes = std::move(outcome.passes),
              .tile_cost = tiled.cost,
              .tile_bound = tiled.bound,
              .is_optimal = tiled.is_optimal};
  return out;
}
