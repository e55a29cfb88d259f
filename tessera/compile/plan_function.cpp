#include "tessera/compile/plan_function.h"

#include "tessera/compile/pass_runner.h"
#include "tessera/compile/whole_calls.h"

using namespace tessera;
using namespace tessera::compiler;

Result<Planned> compiler::plan_function(const ir::FunctionRef& function, const pattern::Target& target,
                                        const PlanOptions& options) {
  TESSERA_TRY(check_valid(*function));
  return plan_valid_function(function, target, options);
}

Result<Planned> compiler::plan_valid_function(const ir::FunctionRef& function, const pattern::Target& target,
                                              const PlanOptions& options) {
  PipelineOptions pipeline = options.pipeline;
  // A device with tiles has none for composites that are no kernel: their parts are tiled.
  const bool may_round = pipeline.passes.floats != FloatRules::exact;
  if (!pipeline.passes.takes && !target.sources.empty() && may_round) pipeline.passes.takes = stays_whole;
  if (target.reads_narrow_factors) pipeline.passes.keeps_narrow_factors = true;
  for (const std::string& name : pipeline.disabled) TESSERA_TRY(check_disabled(name));
  PassRunner runner(function, pipeline, target, options.tiling);
  for (const Pass& pass : all_passes()) TESSERA_TRY(runner.run(pass));
  Stage& stage = runner.stage();
  return Planned{.plan = std::make_shared<const plan::Plan>(*std::move(stage.plan)),
                 .function = stage.function,
                 .passes = runner.take_reports(),
                 .tiling = std::move(stage.tiled->tiling)};
}
