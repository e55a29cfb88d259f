#include "tessera/runtime/cpu/early_start.h"

#include <system_error>

#include "tessera/ir/walk.h"
#include "tessera/op/catalogue.h"
#include "tessera/op/ir_builder.h"
#include "tessera/runtime/cpu/llvm.h"
#include "tessera/runtime/cpu/onednn.h"

using namespace tessera;
using namespace tessera::runtime::cpu;

namespace {

struct Needs {
  bool library = false;
  bool byte_products = false;
  bool kernels = false;
};

void add_needs(const ir::Assign& statement, Needs& out) {
  const auto* call = ir::as<ir::Call>(statement.value);
  const op::Card* card = call == nullptr ? nullptr : op::find_card(call->op);
  if (card == nullptr) return;
  out.kernels = out.kernels || (card->traits.reduction && !card->traits.costly);
  if (!card->traits.costly) return;
  out.library = true;
  const auto type = op::value_type(*statement.targets[0]->type);
  out.byte_products = out.byte_products || (type && type->dtype == op::Dtype::i32);
}

Needs needs_of(const ir::Function& function) {
  Needs out;
  for (const ir::Function* one : ir::functions_below(function))
    for (const auto& statement : one->body) add_needs(*statement, out);
  return out;
}

/// What fails here fails again where it is needed, and is told there.
void meet(Needs needs) {
  if (needs.library)
    if (const auto onednn = OneDnn::open(); onednn && needs.byte_products) (*onednn)->make_byte_code();
  if (needs.kernels) (void)Llvm::open();
}

}  // namespace

std::future<void> runtime::cpu::start_early(const ir::Function& function, KernelCode code) {
  Needs needs = needs_of(function);
  needs.kernels = needs.kernels && code == KernelCode::to_be_made;
  if (!needs.library && !needs.kernels) return {};
  try {
    return std::async(std::launch::async, meet, needs);
  } catch (const std::system_error&) {
    return {};
  }
}
