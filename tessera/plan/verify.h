// Checks a plan that does not come from the compiler: what runs it relies on all of this.
#pragma once

#include "tessera/base/result.h"
#include "tessera/plan/program.h"

namespace tessera::plan {

/// Values are defined once and before they are read; calls have the types that their ops give; the functions
/// of steps are valid programs; a kernel is what its ops say; sizes depend on the plan's symbols alone. Adds
/// what must be equal for the sizes to fit to `equal_sizes`. An error names the step.
[[nodiscard]] Result<void> verify(Plan& plan);

/// Parts take values of the right types from parts before them, and learn sizes from single integers.
/// REQUIRES its plans were verified.
[[nodiscard]] Result<void> verify(const Program& program);

}  // namespace tessera::plan
