// A cover of a function that is tuned, and the part in which it differs from another as a plan of its own: so
// a kernel of a large function is measured without what is around it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/compile/tiling.h"
#include "tessera/plan/plan.h"

namespace tessera::engine {

/// All of a function by these tiles.
[[nodiscard]] Result<plan::PlanRef> plan_of(const ir::Function& function,
                                            const compiler::TiledFunction& tiled);

/// The statements of the tiles of `a` that are no tiles of `b`, ascending; the same the other way round.
[[nodiscard]] std::vector<std::uint32_t> where_they_differ(const compiler::TiledFunction& a,
                                                           const compiler::TiledFunction& b);

/// The tiles over some statements as a plan whose inputs are what they read of the others. REQUIRES that no
/// tile has only some of its statements among them.
[[nodiscard]] Result<plan::PlanRef> plan_of_part(const ir::Function& function,
                                                 const compiler::TiledFunction& tiled,
                                                 std::span<const std::uint32_t> statements);

}  // namespace tessera::engine
