#include "tessera/ir/scalar.h"

using namespace tessera;
using namespace tessera::ir;

ExprRef Scalar::expr(Dtype dtype) const {
  if (expr_ != nullptr) return expr_;
  if (is_float(dtype)) return float_const(literal_, dtype);
  if (dtype == Dtype::boolean) return bool_const(literal_ != 0);
  return int_const(static_cast<std::int64_t>(literal_), dtype);
}

std::optional<Dtype> Scalar::dtype() const { return expr_ == nullptr ? std::nullopt : scalar_dtype(*expr_); }

Scalar tessera::ir::apply(ScalarOpcode opcode, std::initializer_list<Scalar> operands) {
  // The condition of a select has its own dtype and says nothing about the others.
  const std::size_t first = opcode == ScalarOpcode::select ? 1 : 0;
  std::optional<Dtype> common;
  std::size_t index = 0;
  for (const Scalar& operand : operands)
    if (index++ >= first && !common) common = operand.dtype();
  SmallVector<ExprRef, 2> expressions;
  index = 0;
  for (const Scalar& operand : operands)
    expressions.push_back(operand.expr(index++ < first ? Dtype::boolean : common.value_or(Dtype::f32)));
  return Scalar(scalar_op(opcode, std::move(expressions)));
}
