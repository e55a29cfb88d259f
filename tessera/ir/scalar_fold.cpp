#include "tessera/ir/scalar_fold.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>

#include "tessera/ir/fold_expression.h"

using namespace tessera;
using namespace tessera::ir;

namespace {

/// Wide enough for any operation on two 64-bit integers, signed or not, to be exact or right in its low bits.
__extension__ using Wide = __int128;

struct Number {
  Dtype dtype = Dtype::i64;
  std::int64_t bits = 0;  // sign- or zero-extended as the dtype is

  [[nodiscard]] Wide wide() const {
    return dtype == Dtype::u64 ? static_cast<Wide>(static_cast<std::uint64_t>(bits))
                               : static_cast<Wide>(bits);
  }
};

bool is_foldable(Dtype dtype) { return is_integer(dtype) || dtype == Dtype::boolean; }

std::optional<Number> number_of(const Expr& expr) {
  if (const auto* constant = as<IntConst>(expr)) return Number{constant->dtype, constant->value};
  if (const auto* constant = as<BoolConst>(expr)) return Number{Dtype::boolean, constant->value ? 1 : 0};
  return std::nullopt;
}

/// Narrowed as a store does it: integers wrap, anything but 0 is true.
std::int64_t narrowed(Wide value, Dtype dtype) {
  if (dtype == Dtype::boolean) return value != 0 ? 1 : 0;
  const unsigned unused = 64 - 8 * static_cast<unsigned>(size_of(dtype));
  const std::uint64_t high = static_cast<std::uint64_t>(value) << unused;
  return is_signed_integer(dtype) ? static_cast<std::int64_t>(high) >> unused
                                  : static_cast<std::int64_t>(high >> unused);
}

ExprRef constant(std::int64_t bits, Dtype dtype) {
  if (dtype == Dtype::boolean) return bool_const(bits != 0);
  return int_const(bits, dtype);
}

std::optional<bool> compare(ScalarOpcode opcode, Wide a, Wide b) {
  switch (opcode) {
    case ScalarOpcode::eq:
      return a == b;
    case ScalarOpcode::ne:
      return a != b;
    case ScalarOpcode::lt:
      return a < b;
    case ScalarOpcode::le:
      return a <= b;
    case ScalarOpcode::gt:
      return a > b;
    case ScalarOpcode::ge:
      return a >= b;
    default:
      return std::nullopt;
  }
}

Wide multiply(Wide a, Wide b) {
  Wide out = 0;
  (void)__builtin_mul_overflow(a, b, &out);  // only of two u64, whose low bits are what counts
  return out;
}

Wide quotient(Wide a, Wide b) { return b == 0 ? 0 : a / b; }
Wide remainder(Wide a, Wide b) { return b == 0 ? a : a % b; }
bool rounds_up(Wide a, Wide b) { return remainder(a, b) != 0 && b != 0 && (a < 0) != (b < 0); }
Wide floor_quotient(Wide a, Wide b) { return quotient(a, b) - (rounds_up(a, b) ? 1 : 0); }
Wide floor_remainder(Wide a, Wide b) { return remainder(a, b) + (rounds_up(a, b) ? b : 0); }

/// A shift by a negative amount or by the width and more pushes everything out.
Wide shift_left(Wide a, Wide by) { return by < 0 || by > 63 ? 0 : a * (static_cast<Wide>(1) << by); }
Wide shift_right(Wide a, Wide by) { return by < 0 || by > 63 ? (a < 0 ? -1 : 0) : a >> by; }

std::optional<Wide> arithmetic(ScalarOpcode opcode, Wide a, Wide b) {
  switch (opcode) {
    case ScalarOpcode::add:
      return a + b;
    case ScalarOpcode::sub:
      return a - b;
    case ScalarOpcode::mul:
      return multiply(a, b);
    case ScalarOpcode::div:
      return quotient(a, b);
    case ScalarOpcode::fmod:
      return remainder(a, b);
    case ScalarOpcode::floor_div:
      return floor_quotient(a, b);
    case ScalarOpcode::floor_mod:
      return floor_remainder(a, b);
    case ScalarOpcode::min:
      return std::min(a, b);
    case ScalarOpcode::max:
      return std::max(a, b);
    case ScalarOpcode::neg:
      return -a;
    case ScalarOpcode::abs:
      return a < 0 ? -a : a;
    case ScalarOpcode::sign:
      return (a > 0 ? 1 : 0) - (a < 0 ? 1 : 0);
    case ScalarOpcode::bit_and:
      return a & b;
    case ScalarOpcode::bit_or:
      return a | b;
    case ScalarOpcode::bit_xor:
      return a ^ b;
    case ScalarOpcode::bit_not:
      return ~a;
    case ScalarOpcode::shl:
      return shift_left(a, b);
    case ScalarOpcode::shr:
      return shift_right(a, b);
    case ScalarOpcode::popcount:
      return std::popcount(static_cast<std::uint64_t>(a));
    default:
      return std::nullopt;
  }
}

/// Wraps in the width of the dtype; for i64 there is no result if it does not fit. A negative exponent gives
/// what the exact result truncates to.
std::optional<std::int64_t> power(Wide base, Wide exponent, Dtype dtype) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? ((exponent & 1) != 0 ? -1 : 1) : 0;
  std::int64_t out = 1;
  auto square = static_cast<std::int64_t>(base);
  for (auto e = static_cast<std::uint64_t>(exponent); e != 0;) {
    if ((e & 1) != 0 && __builtin_mul_overflow(out, square, &out) && dtype == Dtype::i64) return std::nullopt;
    e >>= 1;
    if (e != 0 && __builtin_mul_overflow(square, square, &square) && dtype == Dtype::i64) return std::nullopt;
  }
  return narrowed(out, dtype);
}

std::optional<std::int64_t> fitting(Wide value, Dtype dtype) {
  const std::int64_t bits = narrowed(value, dtype);
  if (dtype == Dtype::i64 && bits != value) return std::nullopt;
  return bits;
}

/// Truncated and saturated; NaN gives 0.
std::int64_t from_float(double value, Dtype dtype) {
  if (dtype == Dtype::boolean) return value != 0 ? 1 : 0;
  if (std::isnan(value)) return 0;
  const int bits = 8 * static_cast<int>(size_of(dtype)) - (is_signed_integer(dtype) ? 1 : 0);
  const Wide limit = static_cast<Wide>(1) << bits;
  const Wide lowest = is_signed_integer(dtype) ? -limit : 0;
  if (value >= std::ldexp(1.0, bits)) return narrowed(limit - 1, dtype);
  if (value <= static_cast<double>(lowest)) return narrowed(lowest, dtype);
  return narrowed(static_cast<Wide>(value), dtype);
}

ExprRef fold_conversion(const ScalarOp& op, const Expr& operand) {
  if (!is_foldable(op.dtype)) return nullptr;
  if (const auto* value = as<FloatConst>(operand); value != nullptr && op.opcode == ScalarOpcode::cast)
    return constant(from_float(value->value, op.dtype), op.dtype);
  const auto number = number_of(operand);
  if (!number) return nullptr;
  if (op.opcode == ScalarOpcode::bitcast && size_of(number->dtype) != size_of(op.dtype)) return nullptr;
  return constant(narrowed(number->wide(), op.dtype), op.dtype);
}

/// The operation on one or two constants of one dtype, or null.
ExprRef fold_numbers(const ScalarOp& op, std::span<const ExprRef> operands) {
  const auto a = number_of(*operands[0]);
  const auto b = operands.size() > 1 ? number_of(*operands[1]) : a;
  if (!a || !b || a->dtype != b->dtype || operands.size() > 2) return nullptr;
  if (const auto answer = compare(op.opcode, a->wide(), b->wide())) return bool_const(*answer);
  if (op.dtype != a->dtype || (is_division(op.opcode) && b->bits == 0)) return nullptr;
  if (op.opcode == ScalarOpcode::bit_not && op.dtype == Dtype::boolean) return bool_const(a->bits == 0);
  std::optional<std::int64_t> bits;
  if (op.opcode == ScalarOpcode::pow)
    bits = power(a->wide(), b->wide(), op.dtype);
  else if (const auto value = arithmetic(op.opcode, a->wide(), b->wide()))
    bits = fitting(*value, op.dtype);
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

std::optional<std::int64_t> tessera::ir::evaluate_integers(ScalarOpcode opcode, std::int64_t a,
                                                           std::int64_t b) {
  if (opcode == ScalarOpcode::pow) return power(a, b, Dtype::i64);
  const auto value = arithmetic(opcode, a, b);
  return value ? fitting(*value, Dtype::i64) : std::nullopt;
}

bool tessera::ir::is_division(ScalarOpcode opcode) {
  return opcode == ScalarOpcode::div || opcode == ScalarOpcode::fmod || opcode == ScalarOpcode::floor_div ||
         opcode == ScalarOpcode::floor_mod;
}

bool tessera::ir::divides_by_zero(const Expr& expr) {
  const auto* op = as<ScalarOp>(expr);
  if (op == nullptr || !is_division(op->opcode)) return false;
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
