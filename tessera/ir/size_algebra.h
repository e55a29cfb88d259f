// The engine behind dim.h: dimensions as sums of products, and the rules that keep them in normal form.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

#include "tessera/ir/expr.h"

namespace tessera::ir {

/// coefficient * factors[0] * factors[1] …; no factors is the constant term.
struct Term {
  std::int64_t coefficient = 0;
  SmallVector<ExprRef, 2> factors;
};

/// A sum of terms with distinct factors and no zero coefficient, sorted. Empty is 0.
using Sum = std::vector<Term>;

class SizeAlgebra {
 public:
  /// The sum of an operation on two sums; what has no rule becomes an atom.
  [[nodiscard]] Sum combine(ScalarOpcode opcode, const Sum& a, const Sum& b) const;
  /// The terms of an i64 expression, with all its operations done again. A division by zero stays as it is
  /// written.
  [[nodiscard]] Sum simplify(const Expr& root) const;

 private:
  [[nodiscard]] std::strong_ordering compare_atoms(const Expr& a, const Expr& b, int depth = 0) const;
  [[nodiscard]] std::strong_ordering compare_terms(const Term& a, const Term& b) const;
  [[nodiscard]] std::optional<Sum> normalised(Sum terms) const;
  [[nodiscard]] static std::optional<Sum> joined(Sum terms);
  [[nodiscard]] std::optional<Sum> add(Sum a, const Sum& b, std::int64_t sign) const;
  [[nodiscard]] std::optional<Sum> multiply(const Sum& a, const Sum& b) const;
  [[nodiscard]] std::optional<Sum> divide(const Sum& a, std::int64_t c) const;
  [[nodiscard]] std::optional<Sum> divide_exactly(const Sum& a, const Term& b) const;
  [[nodiscard]] std::optional<Sum> without_rounding(const Sum& a, const Sum& b) const;
  [[nodiscard]] std::optional<Sum> floor_div(const Sum& a, const Sum& b) const;
  [[nodiscard]] std::optional<Sum> floor_mod(const Sum& a, const Sum& b) const;
  [[nodiscard]] std::optional<Sum> shift(ScalarOpcode opcode, const Sum& a, const Sum& by) const;
  [[nodiscard]] std::optional<Sum> rule(ScalarOpcode opcode, const Sum& a, const Sum& b) const;
};

/// The terms of a dimension that is in normal form.
[[nodiscard]] Sum terms_of(const Dim& dim);
[[nodiscard]] Dim to_dim(const Sum& sum);
[[nodiscard]] Range range_of(const Sum& sum);

/// An i64 operation of two operands, which are i64 themselves.
[[nodiscard]] bool is_size_operation(const Expr& expr);

}  // namespace tessera::ir
