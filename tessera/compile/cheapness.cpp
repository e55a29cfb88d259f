#include "tessera/compile/cheapness.h"

#include <algorithm>

#include "tessera/compile/function_draft.h"
#include "tessera/compile/purity.h"
#include "tessera/ir/scalar.h"
#include "tessera/ir/walk.h"
#include "tessera/op/body.h"

using namespace tessera;
using namespace tessera::compiler;

namespace {

constexpr std::size_t most_cheap_steps = 4;

bool is_elementary_function(ir::ScalarOpcode opcode) {
  using Op = ir::ScalarOpcode;
  return (opcode >= Op::pow && opcode <= Op::atan2) || (opcode >= Op::exp && opcode <= Op::erfc);
}

bool is_short(const ir::ExprRef& formula) {
  std::size_t steps = 0;
  for (const ir::Node* node : ir::post_order(*formula)) {
    const auto* step = ir::as<ir::ScalarOp>(*node);
    if (step == nullptr) continue;
    if (is_elementary_function(step->opcode) || ++steps > most_cheap_steps) return false;
  }
  return true;
}

ir::Scalar free_scalar(ir::Dtype dtype) { return ir::Scalar(ir::variable("x", ir::scalar_type(dtype))); }

std::vector<ir::Scalar> free_scalars(const op::ValueTypes& types) {
  std::vector<ir::Scalar> out;
  for (const op::ValueType& type : types) out.push_back(free_scalar(type.dtype));
  return out;
}

bool is_short_pointwise(const op::Card& card, const op::ValueTypes& types) {
  if (card.pointwise == nullptr || card.pointwise->scalar == nullptr) return card.pointwise == nullptr;
  return is_short(card.pointwise->scalar(free_scalars(types)).expr(types[0].dtype));
}

bool is_short_indexed(const op::Card& card, const op::ValueTypes& types, const ir::Call& call,
                      std::size_t rank) {
  const auto attributes = op::complete_attributes(card, call.attrs);
  if (!attributes) return false;
  const op::CallInfo info(card, types, *attributes);
  const std::vector<ir::Scalar> axes(rank, free_scalar(ir::Dtype::i64));
  const op::Place place{free_scalar(ir::Dtype::i64), axes};
  return is_short(card.indexed(info, place, free_scalars(types)).expr(ir::Dtype::f32));
}

}  // namespace

bool tessera::compiler::is_cheap(const ir::Assign& statement) {
  const auto* call = ir::as<ir::Call>(statement.value);
  const op::Card* card = call == nullptr ? nullptr : op::find_card(call->op);
  const auto result =
      statement.targets.size() == 1 ? op::value_type(*statement.targets[0]->type) : std::nullopt;
  if (card == nullptr || !result || card->traits.costly || !is_pure(*call)) return false;
  if (card->traits.view) return true;
  const op::ValueTypes types = operand_types(*call);
  if (types.size() != call->args.size()) return false;
  const auto tensors =
      std::count_if(types.begin(), types.end(), [](const auto& type) { return type.rank() > 0; });
  if (card->traits.elementwise) return tensors <= 1 && is_short_pointwise(*card, types);
  return tensors == 0 && card->indexed != nullptr && is_short_indexed(*card, types, *call, result->rank());
}
