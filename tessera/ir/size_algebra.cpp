#include "tessera/ir/size_algebra.h"

#include <algorithm>
#include <limits>

#include "tessera/base/checked.h"
#include "tessera/ir/dim.h"
#include "tessera/ir/fold_expression.h"
#include "tessera/ir/integers.h"
#include "tessera/ir/scalar_fold.h"
#include "tessera/ir/structural_equal.h"

using namespace tessera;
using namespace tessera::ir;

namespace {

constexpr std::size_t max_terms = 1024;  // a sum or product of sums that would have more stays what it is
// How far comparing and bounding look into nested // % min max: the cost doubles per level.
constexpr int max_atom_depth = 12;

bool same_factors(const Term& a, const Term& b) {
  return a.factors.size() == b.factors.size() &&
         std::equal(a.factors.begin(), a.factors.end(), b.factors.begin(),
                    [](const ExprRef& x, const ExprRef& y) {
                      return x == y || structural_equal(*x, *y, CompareMode::strict);
                    });
}

Sum constant_sum(std::int64_t value) { return value == 0 ? Sum{} : Sum{{value, {}}}; }
Sum atom_sum(ExprRef atom) { return {{1, {std::move(atom)}}}; }

std::optional<std::int64_t> as_constant(const Sum& sum) {
  if (sum.empty()) return 0;
  if (sum.size() == 1 && sum[0].factors.empty()) return sum[0].coefficient;
  return std::nullopt;
}

ExprRef scalar_call(ScalarOpcode opcode, ExprRef a, ExprRef b) {
  return scalar_op(opcode, {std::move(a), std::move(b)});
}

ExprRef build_term(const Term& term, std::int64_t coefficient) {
  if (term.factors.empty()) return int_const(coefficient);
  ExprRef out = coefficient == 1 ? term.factors[0]
                                 : scalar_call(ScalarOpcode::mul, int_const(coefficient), term.factors[0]);
  for (std::size_t i = 1; i < term.factors.size(); ++i)
    out = scalar_call(ScalarOpcode::mul, out, term.factors[i]);
  return out;
}

/// The expression of a sum. A positive term leads where there is one, so that `5 - N` reads as people write
/// it.
ExprRef build(const Sum& sum) {
  if (sum.empty()) return int_const(0);
  const auto positive = std::find_if(sum.begin(), sum.end(), [](const Term& t) { return t.coefficient > 0; });
  const auto lead = positive == sum.end() ? sum.begin() : positive;
  ExprRef out = build_term(*lead, lead->coefficient);
  for (auto term = sum.begin(); term != sum.end(); ++term) {
    if (term == lead) continue;
    const bool negate =
        term->coefficient < 0 && term->coefficient != std::numeric_limits<std::int64_t>::min();
    out = scalar_call(negate ? ScalarOpcode::sub : ScalarOpcode::add, out,
                      build_term(*term, negate ? -term->coefficient : term->coefficient));
  }
  return out;
}

/// a // c as an atom; (x // b) // c is x // (b * c).
ExprRef quotient_atom(const Sum& a, std::int64_t c) {
  const bool single = a.size() == 1 && a[0].coefficient == 1 && a[0].factors.size() == 1;
  const auto* inner = single ? as<ScalarOp>(a[0].factors[0]) : nullptr;
  if (inner != nullptr && inner->opcode == ScalarOpcode::floor_div) {
    const auto* b = as<IntConst>(inner->operands[1]);
    const auto both = b != nullptr && b->value > 0 ? checked_mul(b->value, c) : std::nullopt;
    if (both) return scalar_call(ScalarOpcode::floor_div, inner->operands[0], int_const(*both));
  }
  return scalar_call(ScalarOpcode::floor_div, build(a), int_const(c));
}

std::optional<Sum> extreme_of(ScalarOpcode opcode, const Sum& a, const Sum& b) {
  const Dim x = to_dim(a), y = to_dim(b);
  const bool want_larger = opcode == ScalarOpcode::max;
  if (provably_at_least(x, y)) return want_larger ? a : b;
  if (provably_at_least(y, x)) return want_larger ? b : a;
  return std::nullopt;
}

/// Truncating is rounding down where nothing is negative.
ScalarOpcode rounded_down(ScalarOpcode opcode, const Sum& a, const Sum& b) {
  if (opcode != ScalarOpcode::div && opcode != ScalarOpcode::fmod) return opcode;
  if (range_of(a).lower.value_or(-1) < 0 || range_of(b).lower.value_or(0) < 1) return opcode;
  return opcode == ScalarOpcode::div ? ScalarOpcode::floor_div : ScalarOpcode::floor_mod;
}

bool is_polynomial_operation(const Expr& expr) {
  if (!is_size_operation(expr)) return false;
  const ScalarOpcode opcode = static_cast<const ScalarOp&>(expr).opcode;
  return opcode == ScalarOpcode::add || opcode == ScalarOpcode::sub || opcode == ScalarOpcode::mul;
}

Sum leaf_terms(const Expr& expr) {
  const auto* constant = as<IntConst>(expr);
  const bool is_size = constant != nullptr && constant->dtype == Dtype::i64;
  return is_size ? constant_sum(constant->value) : atom_sum(ExprRef(&expr));
}

using Bound = std::optional<std::int64_t>;

Range add_ranges(const Range& a, const Range& b) {
  Range out;
  if (a.lower && b.lower) out.lower = checked_add(*a.lower, *b.lower);
  if (a.upper && b.upper) out.upper = checked_add(*a.upper, *b.upper);
  return out;
}

Range multiply_ranges(const Range& a, const Range& b) {
  if (a == Range{1, 1}) return b;
  const bool non_negative = a.lower.value_or(-1) >= 0 && b.lower.value_or(-1) >= 0;
  if (non_negative) {
    Range out{checked_mul(*a.lower, *b.lower), std::nullopt};
    if (!out.lower) out.lower = 0;
    if (a.upper && b.upper) out.upper = checked_mul(*a.upper, *b.upper);
    return out;
  }
  if (!a.lower || !a.upper || !b.lower || !b.upper) return {};
  Range out;
  bool first = true;
  for (std::int64_t x : {*a.lower, *a.upper})
    for (std::int64_t y : {*b.lower, *b.upper}) {
      const auto product = checked_mul(x, y);
      if (!product) return {};
      out.lower = first ? *product : std::min(*out.lower, *product);
      out.upper = first ? *product : std::max(*out.upper, *product);
      first = false;
    }
  return out;
}

Range scaled(const Range& range, std::int64_t factor) {
  if (factor >= 0) {
    Range out;
    if (range.lower) out.lower = checked_mul(*range.lower, factor);
    if (range.upper) out.upper = checked_mul(*range.upper, factor);
    return out;
  }
  Range out;
  if (range.upper) out.lower = checked_mul(*range.upper, factor);
  if (range.lower) out.upper = checked_mul(*range.lower, factor);
  return out;
}

Bound smaller(Bound a, Bound b) { return a && b ? std::min(*a, *b) : a ? a : b; }
Bound larger(Bound a, Bound b) { return a && b ? std::max(*a, *b) : a ? a : b; }

/// Of a // b. REQUIRES b is at least 1.
Range quotient_range(const Range& a, const Range& b) {
  const auto divided = [&](std::int64_t end, bool by_smallest, std::int64_t by_anything) {
    if (by_smallest) return tessera::floor_div(end, *b.lower);
    return b.upper ? tessera::floor_div(end, *b.upper) : by_anything;
  };
  Range out;
  if (a.lower) out.lower = divided(*a.lower, *a.lower < 0, 0);
  if (a.upper) out.upper = divided(*a.upper, *a.upper >= 0, -1);
  return out;
}

Range sum_range(const Sum& sum, int depth);

Range op_range(const ScalarOp& scalar, int depth) {
  if (depth > max_atom_depth || !is_size_operation(scalar)) return {};
  // A product that was too large to be written out: looking into its factors again and again has no end.
  if (scalar.opcode == ScalarOpcode::add || scalar.opcode == ScalarOpcode::sub ||
      scalar.opcode == ScalarOpcode::mul)
    return {};
  const Range a = sum_range(terms_of(Dim(scalar.operands[0])), depth + 1);
  const Range b = sum_range(terms_of(Dim(scalar.operands[1])), depth + 1);
  const bool positive_divisor = b.lower.value_or(0) >= 1;
  switch (scalar.opcode) {
    case ScalarOpcode::min:
      return {a.lower && b.lower ? smaller(a.lower, b.lower) : Bound(), smaller(a.upper, b.upper)};
    case ScalarOpcode::max:
      return {larger(a.lower, b.lower), a.upper && b.upper ? larger(a.upper, b.upper) : Bound()};
    case ScalarOpcode::floor_div:
      return positive_divisor ? quotient_range(a, b) : Range();
    case ScalarOpcode::floor_mod:
      if (!positive_divisor) return {};
      return {0, b.upper ? Bound(*b.upper - 1) : Bound()};
    default:
      return {};
  }
}

Range atom_range(const Expr& atom, int depth) {
  if (const auto* var = as<Var>(atom)) {
    const auto* type = as<ScalarType>(var->type);
    if (type == nullptr) return {};
    return {type->range.lower.value_or(0), type->range.upper};
  }
  if (const auto* scalar = as<ScalarOp>(atom)) return op_range(*scalar, depth);
  return {};
}

Range sum_range(const Sum& sum, int depth) {
  Range total{0, 0};
  for (const Term& term : sum) {
    Range range{1, 1};
    for (const ExprRef& factor : term.factors) range = multiply_ranges(range, atom_range(*factor, depth));
    total = add_ranges(total, scaled(range, term.coefficient));
  }
  return total;
}

}  // namespace

bool tessera::ir::is_size_operation(const Expr& expr) {
  const auto* scalar = as<ScalarOp>(expr);
  return scalar != nullptr && scalar->operands.size() == 2 && scalar->dtype == Dtype::i64 &&
         scalar_dtype(*scalar->operands[0]) == Dtype::i64 && scalar_dtype(*scalar->operands[1]) == Dtype::i64;
}

std::strong_ordering SizeAlgebra::compare_atoms(const Expr& a, const Expr& b, int depth) const {
  if (&a == &b || depth > max_atom_depth) return std::strong_ordering::equal;
  if (a.kind() != b.kind()) return a.kind() <=> b.kind();
  if (const auto* x = as<Var>(a)) {
    const auto& y = static_cast<const Var&>(b);
    return size_symbol_less(*x, y) ? std::strong_ordering::less : std::strong_ordering::greater;
  }
  if (const auto* x = as<IntConst>(a)) return x->value <=> static_cast<const IntConst&>(b).value;
  const auto* x = as<ScalarOp>(a);
  if (x == nullptr) return std::strong_ordering::equal;
  const auto& y = static_cast<const ScalarOp&>(b);
  if (x->opcode != y.opcode) return x->opcode <=> y.opcode;
  for (std::size_t i = 0; i < x->operands.size(); ++i) {
    const auto order = compare_atoms(*x->operands[i], *y.operands[i], depth + 1);
    if (order != 0) return order;
  }
  return std::strong_ordering::equal;
}

/// Products of more factors come first, the constant last.
std::strong_ordering SizeAlgebra::compare_terms(const Term& a, const Term& b) const {
  if (a.factors.size() != b.factors.size()) return b.factors.size() <=> a.factors.size();
  for (std::size_t i = 0; i < a.factors.size(); ++i) {
    const auto order = compare_atoms(*a.factors[i], *b.factors[i]);
    if (order != 0) return order;
  }
  return std::strong_ordering::equal;
}

/// Sorts, joins terms with the same factors, drops zeros. Nothing on overflow.
std::optional<Sum> SizeAlgebra::normalised(Sum terms) const {
  std::stable_sort(terms.begin(), terms.end(),
                   [&](const Term& a, const Term& b) { return compare_terms(a, b) < 0; });
  return joined(std::move(terms));
}

/// The same for terms that are sorted.
std::optional<Sum> SizeAlgebra::joined(Sum terms) {
  Sum out;
  for (Term& term : terms) {
    if (!out.empty() && same_factors(out.back(), term)) {
      const auto sum = checked_add(out.back().coefficient, term.coefficient);
      if (!sum) return std::nullopt;
      out.back().coefficient = *sum;
    } else {
      if (!out.empty() && out.back().coefficient == 0) out.pop_back();
      out.push_back(std::move(term));
    }
  }
  if (!out.empty() && out.back().coefficient == 0) out.pop_back();
  return out;
}

std::optional<Sum> SizeAlgebra::add(Sum a, const Sum& b, std::int64_t sign) const {
  if (a.size() + b.size() > max_terms) return std::nullopt;
  const auto middle = static_cast<std::ptrdiff_t>(a.size());
  for (const Term& term : b) {
    const auto coefficient = checked_mul(term.coefficient, sign);
    if (!coefficient) return std::nullopt;
    a.push_back({*coefficient, term.factors});
  }
  std::inplace_merge(a.begin(), a.begin() + middle, a.end(),
                     [&](const Term& x, const Term& y) { return compare_terms(x, y) < 0; });
  return joined(std::move(a));
}

std::optional<Sum> SizeAlgebra::multiply(const Sum& a, const Sum& b) const {
  if (a.size() * b.size() > max_terms) return std::nullopt;
  Sum out;
  for (const Term& x : a)
    for (const Term& y : b) {
      const auto coefficient = checked_mul(x.coefficient, y.coefficient);
      if (!coefficient) return std::nullopt;
      Term term{*coefficient, x.factors};
      for (const ExprRef& factor : y.factors) term.factors.push_back(factor);
      std::stable_sort(term.factors.begin(), term.factors.end(),
                       [&](const ExprRef& p, const ExprRef& q) { return compare_atoms(*p, *q) < 0; });
      out.push_back(std::move(term));
    }
  return normalised(std::move(out));
}

/// X + r // c for (c * X + r) // c, with r what c does not divide. REQUIRES c > 0.
std::optional<Sum> SizeAlgebra::divide(const Sum& a, std::int64_t c) const {
  Sum whole, rest;
  for (const Term& term : a) {
    const std::int64_t quotient = tessera::floor_div(term.coefficient, c);
    const std::int64_t remainder = tessera::floor_mod(term.coefficient, c);
    if (!term.factors.empty() && remainder != 0) {
      rest.push_back(term);
      continue;
    }
    if (quotient != 0) whole.push_back({quotient, term.factors});
    if (remainder != 0) rest.push_back({remainder, term.factors});
  }
  const bool only_constant = rest.size() == 1 && rest[0].factors.empty();
  if (rest.empty() || only_constant) return whole;  // 0 <= remainder < c
  return add(std::move(whole), atom_sum(quotient_atom(rest, c)), 1);
}

/// a / b where b is one term of positive symbols that divides every term of a; else nothing.
std::optional<Sum> SizeAlgebra::divide_exactly(const Sum& a, const Term& b) const {
  if (b.coefficient <= 0) return std::nullopt;
  for (const ExprRef& factor : b.factors)
    if (bounds(Dim(factor)).lower.value_or(0) < 1) return std::nullopt;
  Sum out;
  for (const Term& term : a) {
    if (term.coefficient % b.coefficient != 0) return std::nullopt;
    Term quotient{term.coefficient / b.coefficient, term.factors};
    for (const ExprRef& factor : b.factors) {
      const auto at = std::find_if(quotient.factors.begin(), quotient.factors.end(), [&](const ExprRef& f) {
        return structural_equal(*f, *factor, CompareMode::strict);
      });
      if (at == quotient.factors.end()) return std::nullopt;
      quotient.factors.erase(at);
    }
    out.push_back(std::move(quotient));
  }
  return normalised(std::move(out));
}

std::optional<Sum> SizeAlgebra::floor_div(const Sum& a, const Sum& b) const {
  const auto x = as_constant(a);
  const auto y = as_constant(b);
  if (y == 0 || x == 0) return Sum{};
  if (x && y) return constant_sum(tessera::floor_div(*x, *y));
  if (y && *y > 0) return divide(a, *y);
  if (b.size() == 1) return divide_exactly(a, b[0]);
  return std::nullopt;
}

std::optional<Sum> SizeAlgebra::floor_mod(const Sum& a, const Sum& b) const {
  const auto x = as_constant(a);
  const auto y = as_constant(b);
  if (y == 0) return a;
  if (x && y) return constant_sum(tessera::floor_mod(*x, *y));
  if (y == 1 || x == 0) return Sum{};
  if (y && *y > 0) {
    Sum rest;
    for (const Term& term : a)
      if (const std::int64_t r = tessera::floor_mod(term.coefficient, *y); r != 0)
        rest.push_back({r, term.factors});
    if (const auto constant = as_constant(rest)) return constant_sum(tessera::floor_mod(*constant, *y));
    return atom_sum(scalar_call(ScalarOpcode::floor_mod, build(rest), int_const(*y)));
  }
  if (b.size() == 1 && divide_exactly(a, b[0])) return Sum{};
  return std::nullopt;
}

/// a / b where nothing is lost, else nothing.
std::optional<Sum> SizeAlgebra::without_rounding(const Sum& a, const Sum& b) const {
  const auto y = as_constant(b);
  if (!y) return b.size() == 1 ? divide_exactly(a, b[0]) : std::nullopt;
  if (*y == 0 || *y == -1) return *y == 0 ? Sum{} : add({}, a, -1);
  Sum out;
  for (const Term& term : a) {
    if (term.coefficient % *y != 0) return std::nullopt;
    out.push_back({term.coefficient / *y, term.factors});
  }
  return out;
}

/// Shifts by a number are products and quotients of powers of two.
std::optional<Sum> SizeAlgebra::shift(ScalarOpcode opcode, const Sum& a, const Sum& by) const {
  const auto distance = as_constant(by);
  if (!distance || *distance < 0 || *distance > 62) return std::nullopt;
  const std::int64_t power = std::int64_t{1} << *distance;
  return opcode == ScalarOpcode::shl ? multiply(a, constant_sum(power)) : divide(a, power);
}

std::optional<Sum> SizeAlgebra::rule(ScalarOpcode opcode, const Sum& a, const Sum& b) const {
  switch (opcode) {
    case ScalarOpcode::add:
      return add(a, b, 1);
    case ScalarOpcode::sub:
      return add(a, b, -1);
    case ScalarOpcode::mul:
      return multiply(a, b);
    case ScalarOpcode::div:
      return without_rounding(a, b);
    case ScalarOpcode::floor_div:
      return floor_div(a, b);
    case ScalarOpcode::floor_mod:
      return floor_mod(a, b);
    case ScalarOpcode::fmod:
      if (as_constant(b) == 0) return a;
      return without_rounding(a, b) ? std::optional(Sum{}) : std::nullopt;
    case ScalarOpcode::shl:
    case ScalarOpcode::shr:
      return shift(opcode, a, b);
    case ScalarOpcode::min:
    case ScalarOpcode::max:
      return extreme_of(opcode, a, b);
    default:
      return std::nullopt;
  }
}

Sum SizeAlgebra::combine(ScalarOpcode opcode, const Sum& a, const Sum& b) const {
  if (const auto x = as_constant(a), y = as_constant(b); x && y)
    if (const auto value = evaluate_integers(opcode, *x, *y)) return constant_sum(*value);
  opcode = rounded_down(opcode, a, b);
  if (auto out = rule(opcode, a, b)) return *std::move(out);
  ExprRef x = build(a), y = build(b);
  if (info(opcode).commutative && compare_atoms(*x, *y) > 0) std::swap(x, y);
  return atom_sum(scalar_call(opcode, std::move(x), std::move(y)));
}

Sum SizeAlgebra::simplify(const Expr& root) const {
  /// An i64 expression as terms, any other as it is.
  struct Value {
    Sum terms;
    ExprRef other;
  };
  const auto value_of = [](const ExprRef& expr) {
    return scalar_dtype(*expr) == Dtype::i64 ? Value{terms_of(Dim(expr)), nullptr} : Value{{}, expr};
  };
  return fold_expression<Value>(
             root, [](const Expr& expr) { return is<ScalarOp>(expr); },
             [&](const Expr& leaf) { return value_of(ExprRef(&leaf)); },
             [&](const ScalarOp& scalar, std::span<const Value* const> values) {
               const bool by_zero =
                   info(scalar.opcode).has(opcode_trait::divides) && as_constant(values[1]->terms) == 0;
               if (is_size_operation(scalar) && !by_zero)
                 return Value{combine(scalar.opcode, values[0]->terms, values[1]->terms), nullptr};
               SmallVector<ExprRef, 2> operands;
               for (const Value* value : values)
                 operands.push_back(value->other != nullptr ? value->other : build(value->terms));
               return value_of(refold(scalar, std::move(operands)));
             })
      .terms;
}

Sum tessera::ir::terms_of(const Dim& dim) {
  if (dim.is_constant()) return constant_sum(dim.value());
  return fold_expression<Sum>(*dim.expr(), is_polynomial_operation, leaf_terms,
                              [](const ScalarOp& op, std::span<const Sum* const> values) {
                                return SizeAlgebra().combine(op.opcode, *values[0], *values[1]);
                              });
}

Dim tessera::ir::to_dim(const Sum& sum) {
  if (const auto constant = as_constant(sum)) return *constant;
  return Dim(build(sum));
}

Range tessera::ir::range_of(const Sum& sum) { return sum_range(sum, 0); }
