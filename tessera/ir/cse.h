// Common subexpression elimination on flat code: a statement whose value was computed before is dropped and
// its targets are replaced. Done in the bodies of regions too, each on its own.
#pragma once

#include <functional>

#include "tessera/ir/function.h"

namespace tessera::ir {

/// Whether two equal values of this kind are one value. A random op or one with effects is not. Regions are
/// asked about too.
using MayMerge = std::function<bool(const Expr& value)>;

/// Returns `function` itself if nothing is computed twice.
[[nodiscard]] FunctionRef eliminate_common_subexpressions(const FunctionRef& function,
                                                          const MayMerge& may_merge);

/// The same for the statements of this function alone: functions below stay the objects they are.
[[nodiscard]] FunctionRef merge_equal_statements(const FunctionRef& function, const MayMerge& may_merge);

}  // namespace tessera::ir
