#include "tessera/compile/narrow_factors.h"

#include "tessera/ir/uses.h"
#include "tessera/op/ir_builder.h"

using namespace tessera;
using namespace tessera::compiler;

namespace {

/// Smaller ones take no room.
constexpr std::size_t least_bytes = 4096;

/// Whether a call makes a large constant of 8 bits i32.
bool widens(const ir::Call& call, const ir::Var& target) {
  const auto* from = ir::as<ir::Dense>(call.args[0]);
  const auto* to = ir::as<ir::TensorType>(target.type);
  if (call.op != "cast" || from == nullptr || to == nullptr || to->dtype != ir::Dtype::i32) return false;
  const bool is_byte = from->type->dtype == ir::Dtype::i8 || from->type->dtype == ir::Dtype::u8;
  return is_byte && from->type->shape.size() >= 2 && from->data.size() >= least_bytes;
}

bool takes_number(const ir::Call& sub) {
  const auto taken = op::operand_type(*sub.args[1]);
  return taken && taken->shape.empty();
}

}  // namespace

NarrowFactors::NarrowFactors(const ir::Function& function) {
  const auto add = [&](const ir::Expr& operand, Use use) {
    if (!ir::is<ir::Var>(operand) && !ir::is<ir::Dense>(operand)) return;
    const bool is_first = uses_.find(operand) == nullptr;
    uses_[operand] = is_first ? use : Use{};
  };
  for (const auto& statement : function.body) {
    if (const auto* call = ir::as<ir::Call>(statement->value)) {
      for (std::size_t i = 0; i < call->args.size(); ++i) add(*call->args[i], {statement.get(), i});
    } else {
      ir::for_each_use(*statement->value, [&](const ir::Var& var) { add(var, {}); });
    }
  }
  for (const auto& result : function.results)
    ir::for_each_use(*result, [&](const ir::Var& var) { add(var, {}); });
}

bool NarrowFactors::has(const ir::Assign& statement) {
  const auto* call = ir::as<ir::Call>(statement.value);
  if (call == nullptr || call->args.empty() || statement.targets.size() != 1 ||
      !widens(*call, *statement.targets[0]))
    return false;
  // Another statement that makes the same of it would be merged with this one.
  if (uses_[*call->args[0]].statement == nullptr) return false;
  if (only_reader(statement, "matmul", 1) != nullptr) return true;
  const ir::Assign* moved = only_reader(statement, "sub", 0);
  return moved != nullptr && only_reader(*moved, "matmul", 1) != nullptr;
}

const ir::Assign* NarrowFactors::only_reader(const ir::Assign& statement, std::string_view op,
                                             std::size_t operand) {
  const Use* use = uses_.find(*statement.targets[0]);
  if (use == nullptr || use->statement == nullptr || use->operand != operand) return nullptr;
  const auto& call = static_cast<const ir::Call&>(*use->statement->value);
  if (call.op != op) return nullptr;
  return op != "sub" || takes_number(call) ? use->statement : nullptr;
}
