// What is computed twice is computed once: same op, attributes, operands (two parameter slots are two,
// whatever they hold) and types. Not across functions, and not what is random or may have effects.
#pragma once

#include "tessera/compile/pass.h"

namespace tessera::compile {

/// The first of equal statements stays.
[[nodiscard]] Result<ir::FunctionRef> merge_equal(const ir::FunctionRef& function, PassContext& context);

}  // namespace tessera::compile
