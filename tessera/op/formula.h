// Element formulas: written once as a template over the scalar type. On double and on the wrapping integers
// they are the reference kernel, on ir::Scalar the body of a generated kernel.
//
//   struct Sigmoid {
//     template <class T>
//     static auto value(const T& x) { return 1.0 / (1.0 + exp(-x)); }
//   };
//
// Branches are written `select(x < 0.0, a, b)`, so that they exist on every type; both sides are evaluated.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>

#include "tessera/ir/scalar.h"
#include "tessera/op/wide.h"

namespace tessera::op::formula {

using ir::apply;
using ir::Scalar;
using ir::ScalarOpcode;

template <class T>
concept WideInteger = std::same_as<T, SignedWide> || std::same_as<T, UnsignedWide>;
template <class T>
concept Wide = std::same_as<T, double> || WideInteger<T>;

template <Wide T>
T select(bool condition, T a, std::type_identity_t<T> b) {
  return condition ? a : b;
}
inline Scalar select(const Scalar& condition, const Scalar& a, const Scalar& b) {
  return apply(ScalarOpcode::select, {condition, a, b});
}
inline double select(bool condition, double a, double b) { return condition ? a : b; }

// Truth values: bool on the wide types, a boolean expression on Scalar.
inline bool both(bool a, bool b) { return a && b; }
inline bool either(bool a, bool b) { return a || b; }
inline bool differ(bool a, bool b) { return a != b; }
inline bool no(bool a) { return !a; }
inline Scalar both(const Scalar& a, const Scalar& b) { return a & b; }
inline Scalar either(const Scalar& a, const Scalar& b) { return a | b; }
inline Scalar differ(const Scalar& a, const Scalar& b) { return a ^ b; }
inline Scalar no(const Scalar& a) { return apply(ScalarOpcode::bit_not, {a}); }
/// An element of a boolean tensor as a truth value.
template <Wide T>
bool is_true(T x) {
  return x != T(0);
}
inline Scalar is_true(const Scalar& x) { return x.dtype() == ir::Dtype::boolean ? x : x != 0.0; }

// ---- functions of floats

// One pair per function: what the standard library has, and the node that stands for it.
inline double exp(double x) { return std::exp(x); }
inline double exp2(double x) { return std::exp2(x); }
inline double expm1(double x) { return std::expm1(x); }
inline double log(double x) { return std::log(x); }
inline double log2(double x) { return std::log2(x); }
inline double log1p(double x) { return std::log1p(x); }
inline double sqrt(double x) { return std::sqrt(x); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
inline double sin(double x) { return std::sin(x); }
inline double cos(double x) { return std::cos(x); }
inline double tan(double x) { return std::tan(x); }
inline double asin(double x) { return std::asin(x); }
inline double acos(double x) { return std::acos(x); }
inline double atan(double x) { return std::atan(x); }
inline double sinh(double x) { return std::sinh(x); }
inline double cosh(double x) { return std::cosh(x); }
inline double tanh(double x) { return std::tanh(x); }
inline double asinh(double x) { return std::asinh(x); }
inline double acosh(double x) { return std::acosh(x); }
inline double atanh(double x) { return std::atanh(x); }
inline double erf(double x) { return std::erf(x); }
inline double erfc(double x) { return std::erfc(x); }
inline double floor(double x) { return std::floor(x); }
inline double ceil(double x) { return std::ceil(x); }
inline double round(double x) { return std::nearbyint(x); }  ///< ties to even
inline double trunc(double x) { return std::trunc(x); }
inline double atan2(double y, double x) { return std::atan2(y, x); }
inline double fmod(double x, double y) { return std::fmod(x, y); }
inline bool is_nan(double x) { return std::isnan(x); }
inline bool is_inf(double x) { return std::isinf(x); }

#define TESSERA_OPCODE(...)
#define TESSERA_FUNCTION(name, ...) \
  inline Scalar name(const Scalar& x) { return apply(ScalarOpcode::name, {x}); }
#include "tessera/ir/scalar_opcodes.inc"
inline Scalar atan2(const Scalar& y, const Scalar& x) { return apply(ScalarOpcode::atan2, {y, x}); }
inline Scalar fmod(const Scalar& x, const Scalar& y) { return apply(ScalarOpcode::fmod, {x, y}); }
inline Scalar is_nan(const Scalar& x) { return apply(ScalarOpcode::is_nan, {x}); }
inline Scalar is_inf(const Scalar& x) { return apply(ScalarOpcode::is_inf, {x}); }

// ---- functions of any number

/// a * b + c, rounded once. Where bits must be the same everywhere a product is never added to anything but
/// by this: compilers may or may not join the two operations.
inline double fma(double a, double b, double c) { return std::fma(a, b, c); }
template <WideInteger T>
T fma(T a, T b, T c) {
  return a * b + c;
}
inline Scalar fma(const Scalar& a, const Scalar& b, const Scalar& c) {
  return apply(ScalarOpcode::fma, {a, b, c});
}
/// As another dtype.
inline Scalar cast(const Scalar& x, ir::Dtype dtype) {
  const ir::ExprRef expr = x.expr(dtype);  // a literal is of this dtype already
  return Scalar(x.dtype().value_or(dtype) == dtype ? expr : ir::scalar_cast(dtype, expr));
}

/// NaN if either is.
inline double minimum(double a, double b) { return std::isnan(a) || a < b ? a : b; }
inline double maximum(double a, double b) { return std::isnan(a) || a > b ? a : b; }
inline double abs(double x) { return std::fabs(x); }
inline double sign(double x) { return std::isnan(x) ? x : static_cast<double>((x > 0) - (x < 0)); }
/// Has the sign of b.
inline double floor_mod(double a, double b) {
  const double r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
/// The exact quotient rounded down: a / b may round up to an integer that the quotient does not reach, and
/// then a = b * floor_div(a, b) + floor_mod(a, b) would not hold.
inline double floor_div(double a, double b) {
  if (b == 0) return a / b;
  const double r = std::fmod(a, b);
  const double one = r != 0 && (r < 0) != (b < 0) ? 1 : 0;
  return std::nearbyint((a - r) / b - one);
}
inline double pow(double a, double b) { return std::pow(a, b); }

template <WideInteger T>
T minimum(T a, T b) {
  return a.v < b.v ? a : b;
}
template <WideInteger T>
T maximum(T a, T b) {
  return a.v > b.v ? a : b;
}
template <WideInteger T>
T abs(T x) {
  return x.v < 0 ? -x : x;
}
template <WideInteger T>
T sign(T x) {
  return T((x.v > 0) - (x.v < 0));
}
template <WideInteger T>
T floor_div(T a, T b) {
  const T q = a / b;
  return b.v != 0 && (a % b).v != 0 && (a.v < 0) != (b.v < 0) ? q - T(1) : q;
}
template <WideInteger T>
T floor_mod(T a, T b) {
  const T r = a % b;
  return b.v != 0 && r.v != 0 && (r.v < 0) != (b.v < 0) ? r + b : r;
}
template <WideInteger T>
T fmod(T a, T b) {
  return a % b;
}
/// Wraps. A negative exponent gives what the exact result truncates to: 0, except for a base of 1 or -1.
template <WideInteger T>
T pow(T base, T exponent) {
  if (exponent.v < 0) return base.v == 1 ? T(1) : base == T(-1) ? T((exponent.v & 1) != 0 ? -1 : 1) : T(0);
  T out = 1;
  for (auto e = static_cast<std::uint64_t>(exponent.v); e != 0; e >>= 1, base = base * base)
    if ((e & 1) != 0) out = out * base;
  return out;
}
/// Shifts by a negative amount or by the width and more push everything out.
template <WideInteger T>
T shift_left(T a, T by) {
  return static_cast<std::uint64_t>(by.v) > 63
             ? T(0)
             : T(static_cast<std::uint64_t>(a.v) << static_cast<std::uint64_t>(by.v));
}
template <WideInteger T>
T shift_right(T a, T by) {
  const auto distance = static_cast<std::uint64_t>(by.v);
  return distance > 63 ? T(a.v < 0 ? -1 : 0) : T(a.v >> distance);
}

inline Scalar minimum(const Scalar& a, const Scalar& b) { return apply(ScalarOpcode::min, {a, b}); }
inline Scalar maximum(const Scalar& a, const Scalar& b) { return apply(ScalarOpcode::max, {a, b}); }
inline Scalar abs(const Scalar& x) { return apply(ScalarOpcode::abs, {x}); }
inline Scalar sign(const Scalar& x) { return apply(ScalarOpcode::sign, {x}); }
inline Scalar floor_div(const Scalar& a, const Scalar& b) { return apply(ScalarOpcode::floor_div, {a, b}); }
inline Scalar floor_mod(const Scalar& a, const Scalar& b) { return apply(ScalarOpcode::floor_mod, {a, b}); }
inline Scalar pow(const Scalar& a, const Scalar& b) { return apply(ScalarOpcode::pow, {a, b}); }
inline Scalar shift_left(const Scalar& a, const Scalar& b) { return apply(ScalarOpcode::shl, {a, b}); }
inline Scalar shift_right(const Scalar& a, const Scalar& b) { return apply(ScalarOpcode::shr, {a, b}); }
inline Scalar operator~(const Scalar& a) { return apply(ScalarOpcode::bit_not, {a}); }

}  // namespace tessera::op::formula
