#include "tessera/compile/drop_dead.h"

#include "tessera/compile/each_function.h"
#include "tessera/compile/purity.h"
#include "tessera/ir/dead_code.h"

using namespace tessera;

Result<ir::FunctionRef> tessera::compile::drop_dead(const ir::FunctionRef& function, PassContext& context) {
  return rewrite_functions(function, [&](const ir::FunctionRef& one) -> Result<ir::FunctionRef> {
    ir::FunctionRef live = ir::without_dead_code(one, is_pure);
    note_missing(*one, *live, "is not needed", context);
    return live;
  });
}
