#include "tessera/compile/plan_function.h"

#include <algorithm>

#include "tessera/compile/lower.h"
#include "tessera/kernel/build.h"

using namespace tessera;
using namespace tessera::compiler;

namespace {

/// What is one kernel; and what would lose too much if each of its parts were rounded to 16 bits.
bool stays_whole(const op::CallInfo& call) {
  const auto is_short = [](const op::ValueType& type) {
    return type.dtype == op::Dtype::f16 || type.dtype == op::Dtype::bf16;
  };
  return std::any_of(call.inputs().begin(), call.inputs().end(), is_short) ||
         kernel::can_fuse(call.card(), call.inputs(), call.attributes());
}

}  // namespace

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
