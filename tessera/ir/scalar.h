// Scalar expressions as values: `0.5 * x * (1.0 + erf(x))` builds the expression. The bodies of kernels are
// written with it; the same formula on double is the reference kernel (op/formula.h).
//
// A literal takes the dtype of what it is combined with.
#pragma once

#include <optional>

#include "tessera/ir/expr.h"

namespace tessera::ir {

class Scalar {
 public:
  Scalar(double literal) : literal_(literal) {}
  Scalar(int literal) : literal_(literal) {}
  explicit Scalar(ExprRef expr) : expr_(std::move(expr)) {}

  /// The expression; a literal that met nothing becomes a constant of `dtype`.
  [[nodiscard]] ExprRef expr(Dtype dtype) const;
  /// The dtype, if this is no literal.
  [[nodiscard]] std::optional<Dtype> dtype() const;

 private:
  double literal_ = 0;
  ExprRef expr_;
};

/// The operation on the operands, whose literals take the dtype of the others.
[[nodiscard]] Scalar apply(ScalarOpcode opcode, std::initializer_list<Scalar> operands);

inline Scalar operator+(const Scalar& a, const Scalar& b) { return apply(ScalarOpcode::add, {a, b}); }
inline Scalar operator-(const Scalar& a, const Scalar& b) { return apply(ScalarOpcode::sub, {a, b}); }
inline Scalar operator*(const Scalar& a, const Scalar& b) { return apply(ScalarOpcode::mul, {a, b}); }
inline Scalar operator/(const Scalar& a, const Scalar& b) { return apply(ScalarOpcode::div, {a, b}); }
inline Scalar operator-(const Scalar& a) { return apply(ScalarOpcode::neg, {a}); }
inline Scalar operator==(const Scalar& a, const Scalar& b) { return apply(ScalarOpcode::eq, {a, b}); }
inline Scalar operator!=(const Scalar& a, const Scalar& b) { return apply(ScalarOpcode::ne, {a, b}); }
inline Scalar operator<(const Scalar& a, const Scalar& b) { return apply(ScalarOpcode::lt, {a, b}); }
inline Scalar operator<=(const Scalar& a, const Scalar& b) { return apply(ScalarOpcode::le, {a, b}); }
inline Scalar operator>(const Scalar& a, const Scalar& b) { return apply(ScalarOpcode::gt, {a, b}); }
inline Scalar operator>=(const Scalar& a, const Scalar& b) { return apply(ScalarOpcode::ge, {a, b}); }
inline Scalar operator&(const Scalar& a, const Scalar& b) { return apply(ScalarOpcode::bit_and, {a, b}); }
inline Scalar operator|(const Scalar& a, const Scalar& b) { return apply(ScalarOpcode::bit_or, {a, b}); }
inline Scalar operator^(const Scalar& a, const Scalar& b) { return apply(ScalarOpcode::bit_xor, {a, b}); }

}  // namespace tessera::ir
