// Scalar operations on constants. What the reference kernels compute (op/formula.h) is what is computed here,
// except that an i64 result which does not fit is no result: a size that wraps is a mistake.
#pragma once

#include <cstdint>
#include <optional>

#include "tessera/ir/expr.h"

namespace tessera::ir {

/// The value of an i64 operation of two operands; nothing if it does not fit or has no such value. Dividing
/// by zero gives 0, the remainder is the dividend.
[[nodiscard]] std::optional<std::int64_t> evaluate_integers(ScalarOpcode opcode, std::int64_t a,
                                                            std::int64_t b);

/// Whether the right operand of the opcode is a divisor.
[[nodiscard]] bool is_division(ScalarOpcode opcode);
/// A division whose divisor is the constant 0.
[[nodiscard]] bool divides_by_zero(const Expr& expr);

/// The same operation on other operands, folded where they are constants of integer or boolean dtypes, or
/// where a constant operand makes it one of the others (x / 1, x + 0, select(true, x, y)). A division by the
/// constant 0 stays as it is, so that it can be reported.
[[nodiscard]] ExprRef refold(const ScalarOp& op, SmallVector<ExprRef, 2> operands);

/// An expression with all its operations folded, from the leaves up. Linear; no recursion.
[[nodiscard]] ExprRef fold_scalars(const ExprRef& root);

}  // namespace tessera::ir
