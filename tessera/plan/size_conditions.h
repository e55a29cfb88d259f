// What must hold of a plan's size symbols so that every call gives the types that the plan says. Types are
// checked when a program is compiled, but two symbols may be equal for reasons that only a launch shows.
#pragma once

#include "tessera/base/result.h"
#include "tessera/plan/plan.h"

namespace tessera::plan {

/// Adds to `equal_sizes` what the calls of the plan need. Fails if a call cannot have the types it has.
[[nodiscard]] Result<void> add_size_conditions(Plan& plan);

}  // namespace tessera::plan
