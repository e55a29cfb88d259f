#include "tessera/ir/scalar_fold.h"

#include <algorithm>
#include <span>

#include "tessera/ir/fold_expression.h"
#include "tessera/ir/integers.h"

using namespace tessera;
using namespace tessera::ir;

namespace {

bool is_foldable(Dtype dtype) { return is_integer(dtype) || dtype == Dtype::boolean; }

std::optional<Integer> number_of(const Expr& expr) {
  if (const auto* constant = as<IntConst>(expr)) return Integer{constant->dtype, constant->value};
  if (const auto* constant = as<BoolConst>(expr)) return Integer{Dtype::boolean, constant->value ? 1 : 0};
  return std::nullopt;
}

ExprRef constant(std::int64_t bits, Dtype dtype) {
  if (dtype == Dtype::boolean) return bool_const(bits != 0);
  return int_const(bits, dtype);
}

ExprRef fold_conversion(const ScalarOp& op, const Expr& operand) {
  if (!is_foldable(op.dtype)) return nullptr;
  if (const auto* value = as<FloatConst>(operand); value != nullptr && op.opcode == ScalarOpcode::cast)
    return constant(integer_from_float(value->value, op.dtype), op.dtype);
  const auto number = number_of(operand);
  if (!number) return nullptr;
  if (op.opcode == ScalarOpcode::bitcast && size_of(number->dtype) != size_of(op.dtype)) return nullptr;
  return constant(convert_integer(*number, op.dtype), op.dtype);
}

/// The operation on one or two constants of one dtype, or null.
ExprRef fold_numbers(const ScalarOp& op, std::span<const ExprRef> operands) {
  const auto a = number_of(*operands[0]);
  const auto b = operands.size() > 1 ? number_of(*operands[1]) : a;
  if (!a || !b || a->dtype != b->dtype || operands.size() > 2) return nullptr;
  if (const auto answer = compare_integers(op.opcode, *a, *b)) return bool_const(*answer);
  if (op.dtype != a->dtype || (info(op.opcode).has(opcode_trait::divides) && b->bits == 0)) return nullptr;
  const auto bits = op.dtype == Dtype::i64 ? evaluate_integers(op.opcode, a->bits, b->bits)
                                           : wrapped_integers(op.opcode, *a, *b);
  return bits ? constant(*bits, op.dtype) : nullptr;
}

/// x op c where that is x or a constant whatever x is, or null.
ExprRef fold_right_constant(ScalarOpcode opcode, const ExprRef& x, std::int64_t c) {
  switch (opcode) {
    case ScalarOpcode::add:
    case ScalarOpcode::sub:
    case ScalarOpcode::shl:
    case ScalarOpcode::shr:
      return c == 0 ? x : nullptr;
    case ScalarOpcode::mul:
      return c == 1 ? x : c == 0 ? constant(0, *scalar_dtype(*x)) : nullptr;
    case ScalarOpcode::div:
    case ScalarOpcode::floor_div:
      return c == 1 ? x : nullptr;
    case ScalarOpcode::fmod:
    case ScalarOpcode::floor_mod:
      return c == 1 ? constant(0, *scalar_dtype(*x)) : nullptr;
    default:
      return nullptr;
  }
}

/// An operation one of whose two operands is a constant, or null.
ExprRef fold_beside_constant(const ScalarOp& op, std::span<const ExprRef> operands) {
  if (operands.size() != 2 || !is_integer(op.dtype)) return nullptr;
  const auto is_same = [&](const ExprRef& operand) { return scalar_dtype(*operand) == op.dtype; };
  if (!is_same(operands[0]) || !is_same(operands[1])) return nullptr;
  if (const auto c = number_of(*operands[1])) return fold_right_constant(op.opcode, operands[0], c->bits);
  const auto c = number_of(*operands[0]);
  if (c && info(op.opcode).commutative) return fold_right_constant(op.opcode, operands[1], c->bits);
  return nullptr;
}

/// What takes the place of the operation, or null.
ExprRef fold(const ScalarOp& op, std::span<const ExprRef> operands) {
  if (op.opcode == ScalarOpcode::cast || op.opcode == ScalarOpcode::bitcast)
    return fold_conversion(op, *operands[0]);
  if (op.opcode == ScalarOpcode::select) {
    const auto* condition = as<BoolConst>(*operands[0]);
    const bool agree = scalar_dtype(*operands[1]) == scalar_dtype(*operands[2]);
    return condition != nullptr && agree ? operands[condition->value ? 1 : 2] : nullptr;
  }
  if (ExprRef number = fold_numbers(op, operands)) return number;
  if (op.opcode == ScalarOpcode::neg && op.dtype == Dtype::i64)
    return scalar_op(ScalarOpcode::sub, {int_const(0), operands[0]}, op.span());
  return fold_beside_constant(op, operands);
}

}  // namespace

bool tessera::ir::divides_by_zero(const Expr& expr) {
  const auto* op = as<ScalarOp>(expr);
  if (op == nullptr || !info(op->opcode).has(opcode_trait::divides)) return false;
  const auto* divisor = as<IntConst>(op->operands[1]);
  return divisor != nullptr && divisor->value == 0;
}

ExprRef tessera::ir::refold(const ScalarOp& op, SmallVector<ExprRef, 2> operands) {
  if (ExprRef folded = fold(op, operands)) return folded;
  if (std::equal(operands.begin(), operands.end(), op.operands.begin())) return ExprRef(&op);
  if (op.opcode == ScalarOpcode::cast) return scalar_cast(op.dtype, operands[0], op.span());
  if (op.opcode == ScalarOpcode::bitcast) return scalar_bitcast(op.dtype, operands[0], op.span());
  return scalar_op(op.opcode, std::move(operands), op.span());
}

ExprRef tessera::ir::fold_scalars(const ExprRef& root) {
  return fold_expression<ExprRef>(
      *root, [](const Expr& expr) { return is<ScalarOp>(expr); },
      [](const Expr& leaf) { return ExprRef(&leaf); },
      [](const ScalarOp& op, std::span<const ExprRef* const> values) {
        SmallVector<ExprRef, 2> operands;
        for (const ExprRef* value : values) operands.push_back(*value);
        return refold(op, std::move(operands));
      });
}
