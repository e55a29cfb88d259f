// Dead code: statements that nothing uses, results of branches that nothing uses, values that a loop carries
// although neither its results nor its other carried values need them, and captures that no body uses.
#pragma once

#include <functional>

#include "tessera/ir/function.h"

namespace tessera::ir {

/// Whether a value may go if nothing uses it. One with an effect may not. Regions are asked about too.
using MayDrop = std::function<bool(const Expr& value)>;

/// The function itself if nothing can go. Without `may_drop`, whatever is not used goes. Bodies of regions
/// are looked at only where one of their results goes.
[[nodiscard]] FunctionRef without_dead_code(const FunctionRef& function, const MayDrop& may_drop = {});

}  // namespace tessera::ir
