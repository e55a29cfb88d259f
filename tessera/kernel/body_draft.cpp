#include "tessera/kernel/body_draft.h"

#include <algorithm>
#include <bit>

#include "tessera/base/text.h"
#include "tessera/ir/fold_expression.h"

using namespace tessera;
using namespace tessera::kernel;

namespace {

Instruction simple(InstructionKind kind, Dtype dtype, std::uint32_t index) {
  Instruction out;
  out.kind = kind;
  out.dtype = dtype;
  out.index = index;
  return out;
}

}  // namespace

std::size_t BodyDraft::HashInstruction::operator()(const Instruction& instruction) const {
  Hasher hasher;
  hasher.add(static_cast<std::uint64_t>(instruction.kind) << 16 |
             static_cast<std::uint64_t>(instruction.opcode) << 8 |
             static_cast<std::uint64_t>(instruction.dtype));
  hasher.add(instruction.index).add(instruction.bits);
  for (ValueId operand : instruction.operands) hasher.add(operand);
  return hasher.finish().low;
}

ValueId BodyDraft::add(const Instruction& instruction) {
  const auto [at, is_new] = known_.emplace(instruction, static_cast<ValueId>(body_.size()));
  if (is_new) body_.push_back(instruction);
  return at->second;
}

ValueId BodyDraft::load(std::uint32_t operand, Dtype dtype) {
  return add(simple(InstructionKind::load, dtype, operand));
}
ValueId BodyDraft::extent(std::uint32_t axis) {
  return add(simple(InstructionKind::extent, Dtype::i64, axis));
}
ValueId BodyDraft::place(std::uint32_t axis) { return add(simple(InstructionKind::place, Dtype::i64, axis)); }

ValueId BodyDraft::parameter(std::uint32_t slot, Dtype dtype) {
  const auto at = std::find(slots_.begin(), slots_.end(), slot);
  const auto number = static_cast<std::uint32_t>(at - slots_.begin());
  if (at == slots_.end()) {
    slots_.push_back(slot);
    parameters_.push_back(dtype);
  }
  return add(simple(InstructionKind::parameter, dtype, number));
}

ValueId BodyDraft::cast(ValueId value, Dtype to) {
  if (dtype(value) == to) return value;
  Instruction out = simple(InstructionKind::operation, to, 0);
  out.opcode = ScalarOpcode::cast;
  out.operands[0] = value;
  return add(out);
}

Result<ValueId> BodyDraft::operation(ScalarOpcode opcode, std::span<const ValueId> operands, Dtype dtype) {
  const std::size_t first = opcode == ScalarOpcode::select ? 1 : 0;
  const Dtype wide = wide_dtype(this->dtype(operands[first]));
  for (std::size_t i = first; i < operands.size(); ++i)
    if (wide_dtype(this->dtype(operands[i])) != wide)
      return Error(ErrorCode::unsupported, cat("'", ir::to_string(opcode), "' of ", ir::to_string(wide),
                                               " and ", ir::to_string(this->dtype(operands[i]))));
  Instruction out = simple(InstructionKind::operation, wide_dtype(dtype), 0);
  out.opcode = opcode;
  const bool as_numbers = wide == Dtype::boolean && !ir::info(opcode).has(ir::opcode_trait::of_booleans);
  for (std::size_t i = 0; i < operands.size(); ++i)
    out.operands[i] = as_numbers && i >= first ? cast(operands[i], Dtype::i64) : operands[i];
  if (as_numbers && dtype == Dtype::boolean && !ir::info(opcode).makes_boolean) out.dtype = Dtype::i64;
  return cast(add(out), dtype);
}

ValueId BodyDraft::reduction(ScalarOpcode opcode, ValueId of, std::uint32_t axes, Dtype dtype,
                             bool needs_elements) {
  Instruction out = simple(InstructionKind::reduction, dtype, axes);
  out.bits = needs_elements ? 1 : 0;
  out.opcode = opcode;
  out.operands[0] = of;
  return add(out);
}

std::optional<ValueId> BodyDraft::constant(const ir::Expr& expr) {
  Instruction out = simple(InstructionKind::constant, Dtype::boolean, 0);
  if (const auto* c = ir::as<ir::FloatConst>(expr)) {
    out.dtype = c->dtype;
    out.bits = std::bit_cast<std::uint64_t>(c->value);
  } else if (const auto* i = ir::as<ir::IntConst>(expr)) {
    out.dtype = i->dtype;
    out.bits = static_cast<std::uint64_t>(i->value);
  } else if (const auto* b = ir::as<ir::BoolConst>(expr)) {
    out.bits = b->value ? 1 : 0;
  } else if (const auto* p = ir::as<ir::Param>(expr)) {
    return parameter(p->slot, p->dtype);
  } else {
    return std::nullopt;
  }
  return add(out);
}

Result<ValueId> BodyDraft::operation_of(const ir::ScalarOp& op, std::span<const ValueId> operands) {
  if (op.opcode == ScalarOpcode::cast) return cast(operands[0], op.dtype);
  if (op.opcode == ScalarOpcode::bitcast) {
    Instruction out = simple(InstructionKind::operation, op.dtype, 0);
    out.opcode = op.opcode;
    out.operands[0] = operands[0];
    if (ir::size_of(op.dtype) != ir::size_of(dtype(operands[0])) || ir::size_of(op.dtype) < 4)
      return Error(ErrorCode::unsupported,
                   cat("bitcast from ", ir::to_string(dtype(operands[0])), " to ", ir::to_string(op.dtype)));
    return add(out);
  }
  return operation(op.opcode, operands, op.dtype);
}

Result<ValueId> BodyDraft::expression(const ir::Expr& root, const Leaf& leaf) {
  std::optional<Error> failure;
  const ValueId value = ir::fold_expression<ValueId>(
      root, [](const ir::Expr& expr) { return ir::is<ir::ScalarOp>(expr); },
      [&](const ir::Expr& expr) -> ValueId {
        auto id = constant(expr);
        if (!id) id = leaf(expr);
        if (!id) failure = Error(ErrorCode::unsupported, "a scalar expression has a leaf that is no scalar");
        return id.value_or(ValueId{});
      },
      [&](const ir::ScalarOp& op, std::span<const ValueId* const> values) -> ValueId {
        if (failure) return {};
        SmallVector<ValueId, 3> operands;
        for (const ValueId* operand : values) operands.push_back(*operand);
        Result<ValueId> id = operation_of(op, operands);
        if (!id) failure = std::move(id).error();
        return id ? *id : ValueId{};
      });
  if (failure) return *std::move(failure);
  return value;
}
