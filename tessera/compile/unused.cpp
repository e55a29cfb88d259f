#include "tessera/compile/unused.h"

#include "tessera/base/text.h"
#include "tessera/compile/purity.h"
#include "tessera/ir/dead_code.h"
#include "tessera/ir/describe.h"
#include "tessera/ir/uses.h"

using namespace tessera;
using namespace tessera::compiler;

std::vector<Note> compiler::find_unused(const ir::FunctionRef& function) {
  std::vector<Note> out;
  const std::vector<bool> is_used = ir::used_parameters(*function);
  for (std::size_t i = 0; i < function->params.size(); ++i)
    if (!is_used[i])
      out.push_back(
          {cat("input '", ir::describe(*function->params[i]), "' is not read"), function->params[i]->span()});
  const PassOptions options;
  PassContext context(options);
  note_missing(*function, *ir::without_dead_code(function, is_pure), "is not needed", context);
  out.insert(out.end(), context.notes().begin(), context.notes().end());
  return out;
}
