// The last pass: a function becomes a plan.
#pragma once

#include "tessera/base/result.h"
#include "tessera/compile/tiling.h"
#include "tessera/plan/plan.h"

namespace tessera::compile {

/// One step per part. Fails on what no plan can express (tuples as values), with the statement's span.
[[nodiscard]] Result<plan::PlanRef> lower(const ir::Function& function, const TiledFunction& tiled);

}  // namespace tessera::compile
