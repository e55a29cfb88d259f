#include "tessera/compile/pass.h"

#include <algorithm>

#include "tessera/ir/describe.h"
#include "tessera/ir/node_table.h"

using namespace tessera;

void tessera::compile::note_missing(const ir::Function& before, const ir::Function& after,
                                    std::string_view why, PassContext& context) {
  if (&before == &after) return;
  ir::NodeTable<bool> there;
  for (const auto& statement : after.body)
    for (const auto& target : statement->targets) there[*target] = true;
  for (const auto& statement : before.body) {
    const bool is_missing = std::any_of(statement->targets.begin(), statement->targets.end(),
                                        [&](const auto& target) { return there.find(*target) == nullptr; });
    if (is_missing) context.note(cat(ir::describe(*statement->value), " ", why), statement->span());
  }
}
