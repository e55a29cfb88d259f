// The value of a scalar expression, by the same formulas as the reference kernels.
#include "tessera/ir/compare_numbers.h"
#include "tessera/ir/fold_expression.h"
#include "tessera/ir/half.h"
#include "tessera/ir/integers.h"
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

std::optional<double> arithmetic(ScalarOpcode opcode, double a, double b) {
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

std::optional<double> function(ScalarOpcode opcode, double a, double b) {
  switch (opcode) {
#define TESSERA_OPCODE(...)
#define TESSERA_FUNCTION(name, ...) \
  case ScalarOpcode::name:          \
    return f::name(a);
#include "tessera/ir/scalar_opcodes.inc"
    case ScalarOpcode::atan2:
      return f::atan2(a, b);
    case ScalarOpcode::copysign:
      return std::copysign(a, b);
    default:
      return std::nullopt;
  }
}

ScalarValue flag(bool value) { return {Dtype::boolean, 0, value ? 1 : 0}; }

std::optional<ScalarValue> operate_floats(const ir::ScalarOp& op, double a, double b) {
  if (const auto answer = ir::compare_numbers(op.opcode, a, b)) return flag(*answer);
  if (op.opcode == ScalarOpcode::is_nan) return flag(f::is_nan(a));
  if (op.opcode == ScalarOpcode::is_inf) return flag(f::is_inf(a));
  auto value = arithmetic(op.opcode, a, b);
  if (!value) value = function(op.opcode, a, b);
  return value ? std::optional(stored<double>(op.dtype, *value)) : std::nullopt;
}

std::optional<ScalarValue> operate_integers(ScalarOpcode opcode, ir::Integer a, ir::Integer b) {
  if (const auto answer = ir::compare_integers(opcode, a, b)) return flag(*answer);
  const auto bits = ir::wrapped_integers(opcode, a, b);
  return bits ? std::optional(ScalarValue{a.dtype, 0, *bits}) : std::nullopt;
}

ir::Integer integer(const ScalarValue& value) { return {value.dtype, value.integer}; }

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
  const ScalarValue& b = in.size() > 1 ? in[1] : a;
  return ir::is_float(a.dtype) ? operate_floats(op, wide<double>(a), wide<double>(b))
                               : operate_integers(op.opcode, integer(a), integer(b));
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
  using Value = std::optional<ScalarValue>;
  return ir::fold_expression<Value>(
      root, [](const ir::Expr& expr) { return ir::is<ir::ScalarOp>(expr); },
      [&](const ir::Expr& expr) {
        const Value value = constant(expr);
        return value ? value : leaf(expr);
      },
      [](const ir::ScalarOp& op, std::span<const Value* const> values) -> Value {
        SmallVector<ScalarValue, 3> operands;
        for (const Value* value : values) {
          if (!*value) return std::nullopt;
          operands.push_back(**value);
        }
        return evaluate_op(op, operands);
      });
}
