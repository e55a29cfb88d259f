#include "tessera/compile/plan_function.h"

#include "tessera/compile/lower.h"

using namespace tessera;
using namespace tessera::compile;

Result<Planned> compile::plan_function(const ir::FunctionRef& function, const pattern::Target& target,
                                       const PlanOptions& options) {
  Outcome outcome = TESSERA_TRY(run_passes(function, options.pipeline));
  const TiledFunction tiled = TESSERA_TRY(tile(*outcome.function, target, options.tiling));
  Planned out{.plan = TESSERA_TRY(lower(*outcome.function, tiled)),
              .function = outcome.function,
              .passes = std::move(outcome.passes),
              .tile_cost = tiled.cost,
              .tile_bound = tiled.bound,
              .is_optimal = tiled.is_optimal};
  return out;
}
