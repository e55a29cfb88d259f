// The value of a scalar expression, by the same formulas as the reference kernels.
#include <bit>

#include "tessera/ir/half.h"
#include "tessera/ir/node_table.h"
#include "tessera/op/formula.h"
#include "tessera/op/interpreter.h"

using namespace tessera;
using namespace tessera::op;
using ir::ScalarOpcode;

namespace {

namespace f = tessera::op::formula;

/// Narrows to the dtype as a store would, so that each step rounds and wraps as the tensor op does.
template <class W>
ScalarValue stored(Dtype dtype, W value) {
  std::byte memory[8];
  storer<W>(dtype)(memory, 0, 1, 1, &value);
  ScalarValue out{dtype, 0, 0};
  if (ir::is_float(dtype)) {
    loader<double>(dtype)(memory, 0, 1, 1, &out.number);
  } else {
    SignedWide integer;
    loader<SignedWide>(dtype)(memory, 0, 1, 1, &integer);
    out.integer = integer.v;
  }
  return out;
}

template <class W>
W wide(const ScalarValue& value) {
  if constexpr (std::is_same_v<W, double>)
    return ir::is_float(value.dtype) ? value.number : static_cast<double>(value.integer);
  return W(value.integer);
}

template <class W>
std::optional<bool> compare(ScalarOpcode opcode, W a, W b) {
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

template <class W>
std::optional<W> arithmetic(ScalarOpcode opcode, W a, W b) {
  switch (opcode) {
    case ScalarOpcode::add:
      return a + b;
    case ScalarOpcode::sub:
      return a - b;
    case ScalarOpcode::mul:
      return a * b;
    case ScalarOpcode::div:
      return a / b;
    case ScalarOpcode::floor_div:
      return f::floor_div(a, b);
    case ScalarOpcode::floor_mod:
      return f::floor_mod(a, b);
    case ScalarOpcode::fmod:
      return f::fmod(a, b);
    case ScalarOpcode::min:
      return f::minimum(a, b);
    case ScalarOpcode::max:
      return f::maximum(a, b);
    case ScalarOpcode::pow:
      return f::pow(a, b);
    case ScalarOpcode::neg:
      return -a;
    case ScalarOpcode::abs:
      return f::abs(a);
    case ScalarOpcode::sign:
      return f::sign(a);
    default:
      return std::nullopt;
  }
}

template <class Int>
std::optional<Wrapping<Int>> bits(ScalarOpcode opcode, Wrapping<Int> a, Wrapping<Int> b) {
  switch (opcode) {
    case ScalarOpcode::bit_and:
      return a & b;
    case ScalarOpcode::bit_or:
      return a | b;
    case ScalarOpcode::bit_xor:
      return a ^ b;
    case ScalarOpcode::bit_not:
      return ~a;
    case ScalarOpcode::shl:
      return f::shift_left(a, b);
    case ScalarOpcode::shr:
      return f::shift_right(a, b);
    case ScalarOpcode::popcount:
      return Wrapping<Int>(std::popcount(static_cast<std::uint64_t>(a.v)));
    default:
      return std::nullopt;
  }
}

std::optional<double> transcendental(ScalarOpcode opcode, double a, double b) {
  switch (opcode) {
    case ScalarOpcode::atan2:
      return f::atan2(a, b);
    case ScalarOpcode::copysign:
      return std::copysign(a, b);
    case ScalarOpcode::exp:
      return f::exp(a);
    case ScalarOpcode::exp2:
      return f::exp2(a);
    case ScalarOpcode::expm1:
      return f::expm1(a);
    case ScalarOpcode::log:
      return f::log(a);
    case ScalarOpcode::log2:
      return f::log2(a);
    case ScalarOpcode::log1p:
      return f::log1p(a);
    case ScalarOpcode::sqrt:
      return f::sqrt(a);
    case ScalarOpcode::rsqrt:
      return f::rsqrt(a);
    case ScalarOpcode::sin:
      return f::sin(a);
    case ScalarOpcode::cos:
      return f::cos(a);
    case ScalarOpcode::tan:
      return f::tan(a);
    case ScalarOpcode::asin:
      return f::asin(a);
    case ScalarOpcode::acos:
      return f::acos(a);
    case ScalarOpcode::atan:
      return f::atan(a);
    case ScalarOpcode::sinh:
      return f::sinh(a);
    case ScalarOpcode::cosh:
      return f::cosh(a);
    case ScalarOpcode::tanh:
      return f::tanh(a);
    case ScalarOpcode::asinh:
      return f::asinh(a);
    case ScalarOpcode::acosh:
      return f::acosh(a);
    case ScalarOpcode::atanh:
      return f::atanh(a);
    case ScalarOpcode::erf:
      return f::erf(a);
    case ScalarOpcode::erfc:
      return f::erfc(a);
    case ScalarOpcode::floor:
      return f::floor(a);
    case ScalarOpcode::ceil:
      return f::ceil(a);
    case ScalarOpcode::round:
      return f::round(a);
    case ScalarOpcode::trunc:
      return f::trunc(a);
    default:
      return std::nullopt;
  }
}

template <class W>
std::optional<ScalarValue> operate(const ir::ScalarOp& op, W a, W b) {
  if (const auto flag = compare(op.opcode, a, b)) return ScalarValue{Dtype::boolean, 0, *flag ? 1 : 0};
  if (const auto value = arithmetic(op.opcode, a, b)) return stored<W>(op.dtype, *value);
  if constexpr (std::is_same_v<W, double>) {
    if (op.opcode == ScalarOpcode::is_nan) return ScalarValue{Dtype::boolean, 0, f::is_nan(a) ? 1 : 0};
    if (op.opcode == ScalarOpcode::is_inf) return ScalarValue{Dtype::boolean, 0, f::is_inf(a) ? 1 : 0};
    if (const auto value = transcendental(op.opcode, a, b)) return stored<W>(op.dtype, *value);
  } else {
    if (const auto value = bits(op.opcode, a, b)) return stored<W>(op.dtype, *value);
  }
  return std::nullopt;
}

std::optional<ScalarValue> bitcast(const ScalarValue& from, Dtype to) {
  if (ir::size_of(from.dtype) != ir::size_of(to)) return std::nullopt;
  std::byte memory[8] = {};
  visit_wide(from.dtype, [&]<class W>(W*) {
    const W value = wide<W>(from);
    storer<W>(from.dtype)(memory, 0, 1, 1, &value);
  });
  ScalarValue out{to, 0, 0};
  if (ir::is_float(to)) {
    loader<double>(to)(memory, 0, 1, 1, &out.number);
  } else {
    SignedWide integer;
    loader<SignedWide>(to)(memory, 0, 1, 1, &integer);
    out.integer = integer.v;
  }
  return out;
}

std::optional<ScalarValue> evaluate_op(const ir::ScalarOp& op, std::span<const ScalarValue> in) {
  const ScalarValue& a = in[0];
  switch (op.opcode) {
    case ScalarOpcode::select:
      return in[a.integer != 0 ? 1 : 2];
    case ScalarOpcode::bitcast:
      return bitcast(a, op.dtype);
    case ScalarOpcode::bit_not:
      if (a.dtype == Dtype::boolean) return ScalarValue{Dtype::boolean, 0, a.integer == 0 ? 1 : 0};
      break;
    case ScalarOpcode::fma:
      if (ir::is_float(op.dtype))
        return stored<double>(op.dtype, std::fma(a.number, in[1].number, in[2].number));
      return stored<SignedWide>(
          op.dtype, SignedWide(a.integer) * SignedWide(in[1].integer) + SignedWide(in[2].integer));
    case ScalarOpcode::cast:
      return visit_wide(a.dtype, [&]<class W>(W*) -> std::optional<ScalarValue> {
        return stored<W>(op.dtype, wide<W>(a));
      });
    default:
      break;
  }
  return visit_wide(
      a.dtype, [&]<class W>(W*) { return operate<W>(op, wide<W>(a), in.size() > 1 ? wide<W>(in[1]) : W{}); });
}

std::optional<ScalarValue> constant(const ir::Expr& expr) {
  if (const auto* c = ir::as<ir::IntConst>(expr)) return ScalarValue{c->dtype, 0, c->value};
  if (const auto* c = ir::as<ir::FloatConst>(expr)) return ScalarValue{c->dtype, c->value, 0};
  if (const auto* c = ir::as<ir::BoolConst>(expr)) return ScalarValue{Dtype::boolean, 0, c->value ? 1 : 0};
  return std::nullopt;
}

}  // namespace

std::optional<ScalarValue> tessera::op::evaluate_scalar(
    const ir::Expr& root, const std::function<std::optional<ScalarValue>(const ir::Expr&)>& leaf) {
  ir::NodeTable<ScalarValue> done;
  std::vector<const ir::Expr*> stack{&root};
  while (!stack.empty()) {
    const ir::Expr& expr = *stack.back();
    if (done.find(expr) != nullptr) {
      stack.pop_back();
      continue;
    }
    const auto* op = ir::as<ir::ScalarOp>(expr);
    if (op == nullptr) {
      auto value = constant(expr);
      if (!value) value = leaf(expr);
      if (!value) return std::nullopt;
      done[expr] = *value;
      stack.pop_back();
      continue;
    }
    SmallVector<ScalarValue, 3> operands;
    for (const ir::ExprRef& operand : op->operands) {
      const ScalarValue* value = done.find(*operand);
      if (value == nullptr)
        stack.push_back(operand.get());
      else
        operands.push_back(*value);
    }
    if (operands.size() < op->operands.size()) continue;
    const auto value = evaluate_op(*op, operands);
    if (!value) return std::nullopt;
    done[expr] = *value;
    stack.pop_back();
  }
  return *done.find(root);
}
