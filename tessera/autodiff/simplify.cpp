#include "tessera/autodiff/simplify.h"

#include <algorithm>

#include "tessera/autodiff/uses.h"
#include "tessera/ir/cse.h"
#include "tessera/ir/node_table.h"
#include "tessera/ir/seal.h"
#include "tessera/op/catalogue.h"

using namespace tessera;

namespace {

ir::FunctionRef without_dead_statements(const ir::FunctionRef& function) {
  ir::NodeTable<bool> live;
  const auto mark = [&](const ir::Var& var) { live[var] = true; };
  for (const auto& result : function->results) autodiff::for_each_use(*result, mark);
  std::vector<Ref<ir::Assign>> kept;
  for (std::size_t i = function->body.size(); i-- > 0;) {
    const auto& statement = function->body[i];
    const auto& targets = statement->targets;
    if (std::none_of(targets.begin(), targets.end(), [&](const auto& t) { return live.find(*t) != nullptr; }))
      continue;
    autodiff::for_each_use(*statement->value, mark);
    for (const auto& target : targets) autodiff::for_each_use(*target->type, mark);
    kept.push_back(statement);
  }
  if (kept.size() == function->body.size()) return function;
  auto draft = std::make_unique<ir::Function>(*function);
  draft->body.assign(kept.rbegin(), kept.rend());
  return ir::seal(std::move(draft));
}

bool may_merge(const ir::Expr& value) {
  const auto* call = ir::as<ir::Call>(value);
  const op::Card* card = call == nullptr ? nullptr : op::find_card(call->op);
  return card != nullptr && !card->traits.random;
}

}  // namespace

ir::FunctionRef tessera::autodiff::simplified(const ir::FunctionRef& function) {
  return ir::merge_equal_statements(without_dead_statements(function), may_merge);
}
