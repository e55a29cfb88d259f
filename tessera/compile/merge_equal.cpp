#include "tessera/compile/merge_equal.h"

#include "tessera/compile/each_function.h"
#include "tessera/compile/purity.h"
#include "tessera/ir/cse.h"

using namespace tessera;

Result<ir::FunctionRef> tessera::compile::merge_equal(const ir::FunctionRef& function, PassContext& context) {
  return rewrite_functions(function, [&](const ir::FunctionRef& one) -> Result<ir::FunctionRef> {
    ir::FunctionRef merged = ir::merge_equal_statements(one, is_pure);
    note_missing(*one, *merged, "is computed before", context);
    return merged;
  });
}
