// Operands whose value is known when a program is compiled: numbers, dense tensors, scalar expressions of
// numbers. A parameter is none of them, whatever it holds today.
#pragma once

#include <optional>

#include "tessera/ir/function.h"
#include "tessera/op/array.h"
#include "tessera/op/interpreter.h"

namespace tessera::compiler {

/// Whether the operand is a constant tensor or number (scalar expressions are not looked into).
[[nodiscard]] inline bool is_constant(const ir::Expr& operand) {
  return operand.kind() >= ir::NodeKind::int_const && operand.kind() <= ir::NodeKind::dense;
}

/// The value of a number or of a scalar expression over numbers.
[[nodiscard]] std::optional<op::ScalarValue> constant_scalar(const ir::Expr& operand);
/// The elements of a constant operand, which nobody may write to.
[[nodiscard]] std::optional<op::HostTensor> constant_tensor(const ir::Expr& operand);
/// Element i in row-major order.
[[nodiscard]] op::ScalarValue constant_element(const ir::Dense& dense, std::int64_t i);
/// Whether every element is this number; floats by bits, so that 0 is not -0. False for no elements.
[[nodiscard]] bool is_everywhere(const ir::Expr& operand, double number);

/// A constant as an operand: a number if it has rank 0 (as a call takes it), else dense.
[[nodiscard]] ir::ExprRef constant_operand(const op::ScalarValue& value);
[[nodiscard]] Ref<ir::Dense> dense_constant(const op::HostTensor& tensor);

}  // namespace tessera::compiler
