// From a function to a plan for a device: passes, tiling, lowering.
#pragma once

#include "tessera/compile/pipeline.h"
#include "tessera/compile/tiling.h"
#include "tessera/plan/plan.h"

namespace tessera::compiler {

struct PlanOptions {
  PipelineOptions pipeline = {};
  TilingOptions tiling = {};
};

/// A plan and what was done on the way.
struct Planned {
  plan::PlanRef plan;
  ir::FunctionRef function;  ///< after the passes
  std::vector<PassReport> passes;
  pattern::Tiling tiling = {};  ///< its own; without tiles where tiling is disabled or the target has none
};

/// Validates the function first. The plan has the inputs, outputs and parameters of the function, in their
/// order.
[[nodiscard]] Result<Planned> plan_function(const ir::FunctionRef& function, const pattern::Target& target,
                                            const PlanOptions& options = {});
/// The same of a function that is known to be valid.
[[nodiscard]] Result<Planned> plan_valid_function(const ir::FunctionRef& function,
                                                  const pattern::Target& target,
                                                  const PlanOptions& options = {});

}  // namespace tessera::compiler
