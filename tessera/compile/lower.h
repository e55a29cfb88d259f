// The last pass: a function becomes a plan.
#pragma once

#include "tessera/base/result.h"
#include "tessera/plan/plan.h"

namespace tessera::compile {

/// One step per statement. Fails on what no plan can express (tuples as values), with the statement's span.
[[nodiscard]] Result<plan::PlanRef> lower(const ir::Function& function);

}  // namespace tessera::compile
