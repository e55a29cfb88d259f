#include "tests/differential/interval.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <numbers>
#include <optional>

#include "tessera/op/formula.h"

using namespace tessera;
using namespace tessera::differential;
using ir::ScalarOpcode;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double pi = std::numbers::pi;

/// Roundings of what one operation computes, in units of the last place: sums and products are rounded once,
/// or a product of them is, quotients and roots may be products with a reciprocal, functions are
/// approximated.
constexpr double units_of_sums = 1;
constexpr double units_of_quotients = 2;
constexpr double units_of_functions = 4;

using Function = double (*)(double);

Interval no_numbers() { return {infinity, -infinity, true}; }

/// The hull of some values; anything if one is NaN: infinities met.
Interval hull_of(std::initializer_list<double> values) {
  Interval out{infinity, -infinity, false};
  for (const double value : values) {
    if (std::isnan(value)) return anything();
    out.low = std::min(out.low, value);
    out.high = std::max(out.high, value);
  }
  return out;
}

template <class F>
Interval corners(const Interval& a, const Interval& b, F&& f) {
  return hull_of({f(a.low, b.low), f(a.low, b.high), f(a.high, b.low), f(a.high, b.high)});
}

Interval with_nan(Interval value, bool may_be_nan) {
  value.may_be_nan = value.may_be_nan || may_be_nan;
  return value;
}

bool contains_zero(const Interval& a) { return a.low <= 0 && a.high >= 0; }
bool is_number(const Interval& a) { return a.is_exact() && std::isfinite(a.low); }

// ---- arithmetic

Interval sum(const Interval& a, const Interval& b, const Precision& precision) {
  const double low = a.low + b.low, high = a.high + b.high;
  if (std::isnan(low) || std::isnan(high) || (a.high == infinity && b.low == -infinity) ||
      (a.low == -infinity && b.high == infinity))
    return a.is_exact() && b.is_exact() ? exactly(low) : anything();
  if (!is_number(a) || !is_number(b)) return rounded({low, high}, units_of_sums, precision);
  const double part = low - a.low;
  const bool is_whole = (a.low - (low - part)) + (b.low - part) == 0;  // what the f64 sum lost
  if (is_whole && is_representable(low, precision)) return exactly(low);
  return rounded({low, high}, units_of_sums, precision);
}

Interval negative(const Interval& a) { return {-a.high, -a.low, a.may_be_nan}; }

Interval product(const Interval& a, const Interval& b, const Precision& precision) {
  if (a.is_exact() && b.is_exact()) {
    const double out = a.low * b.low;
    const bool is_whole = !std::isfinite(out) || std::fma(a.low, b.low, -out) == 0;
    if (is_whole && (!std::isfinite(out) || is_representable(out, precision))) return exactly(out);
  }
  const auto is_open = [](const Interval& x, const Interval& y) {
    return contains_zero(x) && std::isinf(y.magnitude());
  };
  if (is_open(a, b) || is_open(b, a)) return anything();
  return rounded(corners(a, b, [](double x, double y) { return x * y; }), units_of_sums, precision);
}

Interval quotient(const Interval& a, const Interval& b, const Precision& precision) {
  if (contains_zero(b)) {
    if (!b.is_exact() || !a.is_exact()) return anything();
    return a.low == 0 ? no_numbers() : Interval{-infinity, infinity};
  }
  if (is_number(a) && is_number(b)) {
    const double out = a.low / b.low;
    if (std::fma(out, b.low, -a.low) == 0 && is_representable(out, precision)) return exactly(out);
  }
  return rounded(corners(a, b, [](double x, double y) { return x / y; }), units_of_quotients, precision);
}

/// Rounded once or twice.
Interval product_and_sum(std::span<const Interval> x, const Precision& precision) {
  return sum(product(x[0], x[1], precision), x[2], precision);
}

/// On no side of a jump for certain: between 0 and the divisor.
Interval remainder(const Interval& a, const Interval& b, double (*f)(double, double), bool has_sign_of_b) {
  if (a.is_exact() && b.is_exact()) return exactly(f(a.low, b.low));
  if (contains_zero(b) || !std::isfinite(a.low) || !std::isfinite(a.high)) return anything();
  const auto whole = [&](double x) { return has_sign_of_b ? std::floor(x / b.low) : std::trunc(x / b.low); };
  if (b.is_exact() && whole(a.low) == whole(a.high)) return hull_of({f(a.low, b.low), f(a.high, b.low)});
  const double most = b.magnitude();
  if (has_sign_of_b) return b.low > 0 ? Interval{0, most} : Interval{-most, 0};
  return {a.low < 0 ? -most : 0, a.high > 0 ? most : 0};
}

Interval floor_quotient(const Interval& a, const Interval& b, const Precision& precision) {
  if (a.is_exact() && b.is_exact() && b.low != 0)
    return stored(exactly(op::formula::floor_div(a.low, b.low)), precision);
  const Interval out = quotient(a, b, precision);
  return {std::floor(out.low), std::floor(out.high), out.may_be_nan};
}

Interval absolute(const Interval& a) {
  if (contains_zero(a)) return {0, a.magnitude()};
  return a.low > 0 ? Interval{a.low, a.high} : negative(a);
}

// ---- functions

Interval rising(const Interval& a, Function f) { return {f(a.low), f(a.high)}; }
Interval falling(const Interval& a, Function f) { return {f(a.high), f(a.low)}; }

/// What lies outside of [low, high] gives NaN.
template <class F>
Interval within(Interval a, double low, double high, F&& f) {
  if (a.high < low || a.low > high) return no_numbers();
  const bool is_outside = a.low < low || a.high > high;
  a.low = std::max(a.low, low);
  a.high = std::min(a.high, high);
  return with_nan(f(a), is_outside);
}

Interval reciprocal_root(const Interval& a) {
  if (a.high < 0) return no_numbers();
  if (a.low < 0) return anything();
  if (a.high == 0) return {-infinity, infinity};
  const auto f = [](double x) { return 1 / std::sqrt(x); };
  return {f(a.high), f(a.low)};
}

/// A function that never rises or falls faster than its argument.
Interval wave(const Interval& a, Function f) {
  if (!std::isfinite(a.low) || !std::isfinite(a.high)) return {-1, 1, true};
  const double middle = a.low + (a.high - a.low) / 2, radius = (a.high - a.low) / 2;
  const double value = f(middle);
  return {std::max(-1.0, value - radius), std::min(1.0, value + radius)};
}

Interval tangent(const Interval& a) {
  if (!std::isfinite(a.low) || !std::isfinite(a.high)) return anything();
  const auto branch = [](double x) { return std::floor(x / pi + 0.5); };
  const Interval out = rising(a, [](double x) { return std::tan(x); });
  return branch(a.low) == branch(a.high) && out.has_numbers() ? out : Interval{-infinity, infinity};
}

Interval hyperbolic_cosine(const Interval& a) {
  return rising(absolute(a), [](double x) { return std::cosh(x); });
}

/// log2 of what a power gives says how many digits its argument needs.
Interval power(const Interval& a, const Interval& b, const Precision& precision) {
  const auto f = [](double x, double y) { return std::pow(x, y); };
  Interval out;
  const bool is_whole = b.is_exact() && std::floor(b.low) == b.low;
  if (a.is_exact() && b.is_exact()) {
    out = a.low == 0 && b.low < 0 ? Interval{-infinity, infinity} : exactly(f(a.low, b.low));
    if (b.low == 0 || b.low == 1 || !std::isfinite(out.low)) return out;
  } else if (a.low > 0 || (a.low == 0 && b.low > 0)) {
    out = corners(a, b, f);
  } else if (is_whole && std::fmod(b.low, 2) == 0 && b.low >= 0) {
    out = corners(absolute(a), b, f);
  } else if (is_whole && (b.low > 0 || !contains_zero(a))) {
    out = corners(a, b, f);
  } else {
    return anything();
  }
  const double digits = std::abs(std::log2(std::clamp(out.magnitude(), 0x1p-160, 0x1p160)));
  return rounded(out, units_of_functions + 2 * digits, precision);
}

Interval angle(const Interval& y, const Interval& x) {
  if (x.low > 0 || !contains_zero(y))
    return corners(y, x, [](double a, double b) { return std::atan2(a, b); });
  return {-pi, pi};
}

Interval sign_from(const Interval& a, const Interval& b) {
  const Interval size = absolute(a);
  if (b.low > 0) return size;
  if (b.high < 0) return negative(size);
  return hull(size, negative(size));
}

// ---- truth

Interval truth(bool may_be_true, bool may_be_false) {
  return {may_be_false ? 0.0 : 1.0, may_be_true ? 1.0 : 0.0};
}

std::optional<Interval> comparison(ScalarOpcode opcode, const Interval& a, const Interval& b) {
  const bool numbers = a.has_numbers() && b.has_numbers(), nan = a.may_be_nan || b.may_be_nan;
  const bool meet = numbers && a.low <= b.high && b.low <= a.high;
  const bool same = numbers && a.low == a.high && b.low == b.high && a.low == b.low;
  switch (opcode) {
    case ScalarOpcode::eq:
      return truth(meet, nan || !same);
    case ScalarOpcode::ne:
      return truth(nan || !same, meet);
    case ScalarOpcode::lt:
      return truth(numbers && a.low < b.high, nan || a.high >= b.low);
    case ScalarOpcode::le:
      return truth(numbers && a.low <= b.high, nan || a.high > b.low);
    case ScalarOpcode::gt:
      return truth(numbers && a.high > b.low, nan || a.low <= b.high);
    case ScalarOpcode::ge:
      return truth(numbers && a.high >= b.low, nan || a.low < b.high);
    default:
      return std::nullopt;
  }
}

std::optional<Interval> test(ScalarOpcode opcode, std::span<const Interval> x) {
  const Interval& a = x[0];
  const bool reaches = a.has_numbers() && (a.low == -infinity || a.high == infinity);
  switch (opcode) {
    case ScalarOpcode::is_nan:
      return truth(a.may_be_nan, a.has_numbers());
    case ScalarOpcode::is_inf:
      return truth(reaches, !reaches || a.low != a.high || a.may_be_nan);
    case ScalarOpcode::bit_not:
      return Interval{1 - a.high, 1 - a.low};
    case ScalarOpcode::bit_and:
      return Interval{std::min(a.low, x[1].low), std::min(a.high, x[1].high)};
    case ScalarOpcode::bit_or:
      return Interval{std::max(a.low, x[1].low), std::max(a.high, x[1].high)};
    case ScalarOpcode::bit_xor:
      return a.is_exact() && x[1].is_exact() ? exactly(a.low == x[1].low ? 0 : 1) : Interval{0, 1};
    case ScalarOpcode::select:
      return a.is_exact() ? x[a.low != 0 ? 1 : 2] : hull(x[1], x[2]);
    default:
      return std::nullopt;
  }
}

// ---- all of them, on numbers

std::optional<Interval> arithmetic(ScalarOpcode opcode, std::span<const Interval> x, const Precision& p) {
  const Interval &a = x[0], &b = x[x.size() > 1 ? 1 : 0];
  switch (opcode) {
    case ScalarOpcode::add:
      return sum(a, b, p);
    case ScalarOpcode::sub:
      return sum(a, negative(b), p);
    case ScalarOpcode::mul:
      return product(a, b, p);
    case ScalarOpcode::div:
      return quotient(a, b, p);
    case ScalarOpcode::fma:
      return product_and_sum(x, p);
    case ScalarOpcode::floor_div:
      return floor_quotient(a, b, p);
    case ScalarOpcode::floor_mod:
      return remainder(a, b, &op::formula::floor_mod, true);
    case ScalarOpcode::fmod:
      return remainder(a, b, &op::formula::fmod, false);
    case ScalarOpcode::min:
      return Interval{std::min(a.low, b.low), std::min(a.high, b.high)};
    case ScalarOpcode::max:
      return Interval{std::max(a.low, b.low), std::max(a.high, b.high)};
    case ScalarOpcode::neg:
      return negative(a);
    case ScalarOpcode::abs:
      return absolute(a);
    case ScalarOpcode::sign:
      return rising(a, &op::formula::sign);
    case ScalarOpcode::copysign:
      return sign_from(a, b);
    case ScalarOpcode::cast:
      return a;
    case ScalarOpcode::pow:
      return power(a, b, p);
    default:
      return std::nullopt;
  }
}

/// Functions whose results are numbers of the dtype of the argument.
std::optional<Interval> whole_number(ScalarOpcode opcode, const Interval& a) {
  switch (opcode) {
    case ScalarOpcode::floor:
      return rising(a, &op::formula::floor);
    case ScalarOpcode::ceil:
      return rising(a, &op::formula::ceil);
    case ScalarOpcode::round:
      return rising(a, &op::formula::round);
    case ScalarOpcode::trunc:
      return rising(a, &op::formula::trunc);
    default:
      return std::nullopt;
  }
}

Function monotone_function(ScalarOpcode opcode) {
  switch (opcode) {
    case ScalarOpcode::exp:
      return &op::formula::exp;
    case ScalarOpcode::exp2:
      return &op::formula::exp2;
    case ScalarOpcode::expm1:
      return &op::formula::expm1;
    case ScalarOpcode::atan:
      return &op::formula::atan;
    case ScalarOpcode::sinh:
      return &op::formula::sinh;
    case ScalarOpcode::tanh:
      return &op::formula::tanh;
    case ScalarOpcode::asinh:
      return &op::formula::asinh;
    case ScalarOpcode::erf:
      return &op::formula::erf;
    default:
      return nullptr;
  }
}

std::optional<Interval> limited_function(ScalarOpcode opcode, const Interval& a) {
  const auto rise = [](Function f) { return [f](const Interval& x) { return rising(x, f); }; };
  switch (opcode) {
    case ScalarOpcode::log:
      return within(a, 0, infinity, rise(&op::formula::log));
    case ScalarOpcode::log2:
      return within(a, 0, infinity, rise(&op::formula::log2));
    case ScalarOpcode::log1p:
      return within(a, -1, infinity, rise(&op::formula::log1p));
    case ScalarOpcode::asin:
      return within(a, -1, 1, rise(&op::formula::asin));
    case ScalarOpcode::acos:
      return within(a, -1, 1, [](const Interval& x) { return falling(x, &op::formula::acos); });
    case ScalarOpcode::acosh:
      return within(a, 1, infinity, rise(&op::formula::acosh));
    case ScalarOpcode::atanh:
      return within(a, -1, 1, rise(&op::formula::atanh));
    default:
      return std::nullopt;
  }
}

Interval root(const Interval& a, const Precision& precision) {
  const auto f = [](const Interval& x) { return rising(x, &op::formula::sqrt); };
  const Interval out = within(a, 0, infinity, f);
  if (is_number(a) && a.low >= 0 && std::fma(out.low, out.low, -a.low) == 0 &&
      is_representable(out.low, precision))
    return out;
  return rounded(out, units_of_quotients, precision);
}

Interval function(ScalarOpcode opcode, std::span<const Interval> x, const Precision& precision) {
  const Interval& a = x[0];
  if (opcode == ScalarOpcode::sqrt) return root(a, precision);
  std::optional<Interval> out;
  if (const Function f = monotone_function(opcode)) out = rising(a, f);
  if (!out) out = limited_function(opcode, a);
  if (opcode == ScalarOpcode::erfc) out = falling(a, &op::formula::erfc);
  if (opcode == ScalarOpcode::cosh) out = hyperbolic_cosine(a);
  if (opcode == ScalarOpcode::rsqrt) out = reciprocal_root(a);
  if (opcode == ScalarOpcode::sin) out = wave(a, &op::formula::sin);
  if (opcode == ScalarOpcode::cos) out = wave(a, &op::formula::cos);
  if (opcode == ScalarOpcode::tan) out = tangent(a);
  if (opcode == ScalarOpcode::atan2) out = angle(a, x[1]);
  return out ? rounded(*out, units_of_functions, precision) : anything();
}

}  // namespace

bool Interval::contains(double value) const {
  return std::isnan(value) ? may_be_nan : low <= value && value <= high;
}

double Interval::magnitude() const { return has_numbers() ? std::max(std::abs(low), std::abs(high)) : 0; }

Interval tessera::differential::exactly(double value) {
  return std::isnan(value) ? no_numbers() : Interval{value, value};
}

Interval tessera::differential::anything() { return {-infinity, infinity, true}; }

Interval tessera::differential::hull(const Interval& a, const Interval& b) {
  return {std::min(a.low, b.low), std::max(a.high, b.high), a.may_be_nan || b.may_be_nan};
}

Interval tessera::differential::around(double value, double distance) {
  if (!std::isfinite(value) || !std::isfinite(distance)) return anything();
  return {value - distance, value + distance};
}

const Precision& tessera::differential::precision_of(ir::Dtype dtype) {
  static constexpr Precision f64{0x1p-52, 0x1.fffffffffffffp1023, 0x1p-1074},
      f32{0x1p-23, 0x1.fffffep127, 0x1p-149}, f16{0x1p-10, 65504, 0x1p-24},
      bf16{0x1p-7, 0x1.fep127, 0x1p-133};
  switch (dtype) {
    case ir::Dtype::f32:
      return f32;
    case ir::Dtype::f16:
      return f16;
    case ir::Dtype::bf16:
      return bf16;
    default:
      return f64;
  }
}

const Precision& tessera::differential::computing_precision(ir::Dtype dtype) {
  return precision_of(ir::is_float(dtype) && dtype != ir::Dtype::f64 ? ir::Dtype::f32 : ir::Dtype::f64);
}

bool tessera::differential::is_representable(double value, const Precision& precision) {
  if (!std::isfinite(value) || value == 0) return true;
  if (std::abs(value) > precision.largest) return false;
  int exponent = 0;
  (void)std::frexp(value, &exponent);
  const double step = std::max(std::ldexp(precision.unit, exponent - 1), precision.smallest);
  return std::fmod(value, step) == 0;
}

Interval tessera::differential::rounded(const Interval& value, double units, const Precision& precision) {
  if (!value.has_numbers()) return value;
  const auto by = [&](double x) { return units * (precision.unit * std::abs(x) + precision.smallest); };
  Interval out = value;
  if (std::isfinite(out.low)) out.low -= by(out.low);
  if (std::isfinite(out.high)) out.high += by(out.high);
  // A larger number is infinite, or not yet where there is more room than the dtype has.
  if (out.high > precision.largest) out.high = infinity;
  if (out.low < -precision.largest) out.low = -infinity;
  out.low = std::min(out.low, value.low == infinity ? infinity : precision.largest);
  out.high = std::max(out.high, value.high == -infinity ? -infinity : -precision.largest);
  return out;
}

Interval tessera::differential::stored(const Interval& value, const Precision& precision) {
  const bool stays = value.is_exact() && is_representable(value.low, precision);
  return stays ? value : rounded(value, 1, precision);
}

Interval tessera::differential::apply(ScalarOpcode opcode, std::span<const Interval> operands,
                                      const Precision& precision) {
  if (const auto out = test(opcode, operands)) return *out;
  if (operands.size() > 1)
    if (const auto out = comparison(opcode, operands[0], operands[1])) return *out;
  bool nan = false;
  for (const Interval& operand : operands) {
    nan = nan || operand.may_be_nan;
    if (nan && opcode == ScalarOpcode::pow) return anything();  // NaN to the power of 0 is 1
    if (!operand.has_numbers()) return no_numbers();
  }
  auto out = arithmetic(opcode, operands, precision);
  if (!out) out = whole_number(opcode, operands[0]);
  return with_nan(out ? *out : function(opcode, operands, precision), nan);
}
