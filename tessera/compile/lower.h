// A function becomes a plan: its steps in the order of the parts.
#pragma once

#include "tessera/base/result.h"
#include "tessera/compile/tiling.h"
#include "tessera/plan/plan.h"

namespace tessera::compiler {

/// One step per part. Fails on what no plan can express (tuples as values), with the statement's span.
[[nodiscard]] Result<plan::Plan> lower(const ir::Function& function, const TiledFunction& tiled);

}  // namespace tessera::compiler
