// Scalar operations on constants become constants; an i64 result that does not fit stays as it is written.
#pragma once

#include "tessera/ir/expr.h"

namespace tessera::ir {

/// A division whose divisor is the constant 0.
[[nodiscard]] bool divides_by_zero(const Expr& expr);

/// The same operation on other operands, folded where they are constants of integer or boolean dtypes, or
/// where a constant operand makes it one of the others (x / 1, x + 0, select(true, x, y)). A division by the
/// constant 0 stays as it is, so that it can be reported.
[[nodiscard]] ExprRef refold(const ScalarOp& op, SmallVector<ExprRef, 2> operands);

/// An expression with all its operations folded, from the leaves up. Linear; no recursion.
[[nodiscard]] ExprRef fold_scalars(const ExprRef& root);

}  // namespace tessera::ir
