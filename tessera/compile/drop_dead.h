// Statements, results of branches and carried values of loops that nothing needs go.
#pragma once

#include "tessera/compile/pass.h"

namespace tessera::compile {

/// What may have an effect stays.
[[nodiscard]] Result<ir::FunctionRef> drop_dead(const ir::FunctionRef& function, PassContext& context);

}  // namespace tessera::compile
