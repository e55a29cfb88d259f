// Going over a function and all functions below it: the bodies of regions and the functions it calls.
#pragma once

#include <functional>
#include <vector>

#include "tessera/base/result.h"
#include "tessera/ir/function.h"

namespace tessera::compiler {

/// What takes the place of a function whose inner functions are done already.
using FunctionRule = std::function<Result<ir::FunctionRef>(const ir::FunctionRef&)>;

/// Applies `rule` to every function, inner ones first; again to those that the rule of a function around them
/// made of them. REQUIRES that the rule keeps parameters and the
/// types of results. Returns `root` itself if nothing changed.
[[nodiscard]] Result<ir::FunctionRef> rewrite_functions(const ir::FunctionRef& root,
                                                        const FunctionRule& rule);

}  // namespace tessera::compiler
