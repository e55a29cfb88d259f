#include "tessera/autodiff/simplify.h"

#include "tessera/autodiff/fold_views.h"
#include "tessera/ir/cse.h"
#include "tessera/ir/dead_code.h"
#include "tessera/op/catalogue.h"

using namespace tessera;
using autodiff::Repetition;

namespace {

bool may_merge(const ir::Expr& value) {
  const auto* call = ir::as<ir::Call>(value);
  const op::Card* card = call == nullptr ? nullptr : op::find_card(call->op);
  return card != nullptr && !card->traits.random;
}

}  // namespace

ir::FunctionRef tessera::autodiff::simplified(const ir::FunctionRef& function, Repetition repetition) {
  const ir::FunctionRef folded = fold_views(function);
  const ir::FunctionRef live = without_dead_code(folded);
  if (repetition == Repetition::none && folded == function) return live;
  return ir::merge_equal_statements(live, may_merge);
}
