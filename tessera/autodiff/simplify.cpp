#include "tessera/autodiff/simplify.h"

#include "tessera/autodiff/fold_views.h"
#include "tessera/ir/cse.h"
#include "tessera/ir/dead_code.h"
#include "tessera/op/catalogue.h"

using namespace tessera;

namespace {

bool may_merge(const ir::Expr& value) {
  const auto* call = ir::as<ir::Call>(value);
  const op::Card* card = call == nullptr ? nullptr : op::find_card(call->op);
  return card != nullptr && !card->traits.random;
}

}  // namespace

ir::FunctionRef tessera::autodiff::simplified(const ir::FunctionRef& function) {
  return ir::merge_equal_statements(without_dead_code(fold_views(function)), may_merge);
}
