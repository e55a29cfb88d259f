// From a function to a program of plans: one plan, or several where sizes depend on data.
#pragma once

#include <vector>

#include "tessera/compile/plan_function.h"
#include "tessera/plan/program.h"

namespace tessera::compiler {

struct PlannedProgram {
  plan::Program program;
  std::vector<Planned> parts;  ///< what was done for each
};

/// Validates the function first. The program has the inputs, outputs and parameters of the function, in their
/// order.
[[nodiscard]] Result<PlannedProgram> plan_program(const ir::FunctionRef& function,
                                                  const pattern::Target& target,
                                                  const PlanOptions& options = {});

}  // namespace tessera::compiler
