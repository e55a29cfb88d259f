// Functions of f64 without branches, for generated code. Those of f32 that have no code of their own are
// computed here as well, and rounded once.
//
// M says what the arithmetic is done with: F (double), whole numbers and truths, with operators, and the
// functions named below. What each function keeps is tested by a sweep (docs/kernel.md).
#pragma once

#include "tessera/kernel/vector_math.h"

namespace tessera::runtime::cpu::doubles {

using kernel::math::Halved;
using kernel::math::limited;
using kernel::math::polynomial;

// ---- powers

/// x = n ln 2 + rest with |rest| <= ln 2 / 2.
template <class M, class F>
Halved<F> by_ln2(const F& x) {
  const F n = M::round(x * M::number(1.44269504088896340736));
  // ln 2 in two parts: n times the first is exact.
  const F rest = M::mul_add(n, M::number(-6.93147180369123816490e-01), x);
  return {n, M::mul_add(n, M::number(-1.9082149292705877e-10), rest)};
}

/// exp(r) - 1 for |r| <= ln 2 / 2.
template <class M, class F>
F small_expm1(const F& r) {
  const F p = polynomial<M>(r, 0.5, 0.16666666666666671, 0.041666666666666671, 0.0083333333333261358,
                            0.0013888888888883748, 0.00019841269874820627, 2.4801587325547743e-05,
                            2.7557255400206422e-06, 2.7557273643110297e-07, 2.5105217004720745e-08,
                            2.0914686968086876e-09);
  return M::mul_add(p * r, r, r);
}

/// (1 + p) 2^n, in two steps, so that results below the normal numbers are right.
template <class M, class F>
F scaled_in_steps(const F& p, const F& n) {
  const F half = M::floor(n * M::number(0.5)), first = M::power_of_two(half);
  return M::mul_add(p, first, first) * M::power_of_two(n - half);
}

template <class M, class F>
F exp(const F& given) {
  const Halved<F> h = by_ln2<M>(limited<M>(given, -746.0, 710.0));
  return scaled_in_steps<M>(small_expm1<M>(h.rest), h.n);
}

template <class M, class F>
F exp2(const F& given) {
  const F x = limited<M>(given, -1076.0, 1025.0), n = M::round(x);
  return scaled_in_steps<M>(small_expm1<M>((x - n) * M::number(0.693147180559945309417)), n);
}

template <class M, class F>
F expm1(const F& given) {
  const Halved<F> h = by_ln2<M>(limited<M>(given, -40.0, 710.0));
  // With half the power, so that it is finite where the result is.
  const F power = M::power_of_two(h.n - M::number(1.0));
  const F half = M::mul_add(small_expm1<M>(h.rest), power, power - M::number(0.5));
  return M::select(given == M::number(0.0), given, half + half);
}

/// exp(-2 |x|) - 1 is never larger than 1, nor does it lose anything where x is small.
template <class M, class F>
F tanh(const F& x) {
  const F t = expm1<M>(M::abs(x) * M::number(-2.0));
  return M::copy_sign(t / (t + M::number(2.0)), x);
}

// ---- logarithms

/// x = 2^n (1 + rest) with 1 + rest from sqrt(1/2) to sqrt(2), for positive finite x.
template <class M, class F>
Halved<F> by_power(const F& given) {
  const auto is_tiny = given < M::number(2.2250738585072014e-308);
  const F x = M::select(is_tiny, given * M::number(18014398509481984.0), given);
  const auto bits = M::bits(x);
  const auto exponent = M::shift_right(bits - M::whole(0x3fe6a09e667f3bcd), 52);
  const F n = M::to_float(exponent), fraction = M::from_bits(bits - M::shift_left(exponent, 52));
  return {M::select(is_tiny, n - M::number(54.0), n), fraction - M::number(1.0)};
}

/// log(1 + r) is r - lost.
template <class M, class F>
F log_lost(const F& r) {
  const F s = r / (r + M::number(2.0)), t = s * s, square = r * r * M::number(0.5);
  const F p = t * polynomial<M>(t, 6.666666666666735130e-01, 3.999999999940941908e-01,
                                2.857142874366239149e-01, 2.222219843214978396e-01, 1.818357216161805012e-01,
                                1.531383769920937332e-01, 1.479819860511658591e-01);
  return square - s * (square + p);
}

template <class M, class F>
F log(const F& x) {
  const Halved<F> h = by_power<M>(x);
  const F low = M::mul_add(h.n, M::number(1.9082149292705877e-10), -log_lost<M>(h.rest));
  const F y = M::mul_add(h.n, M::number(6.93147180369123816490e-01), h.rest + low);
  return kernel::math::log_edges<M>(x, y);
}

template <class M, class F>
F log2(const F& x) {
  const Halved<F> h = by_power<M>(x);
  const F y = h.rest - log_lost<M>(h.rest);
  return kernel::math::log_edges<M>(x, M::mul_add(y, M::number(1.44269504088896340736), h.n));
}

template <class M, class F>
F log1p(const F& x) {
  const F u = x + M::number(1.0);
  // What was lost in u: zero where u is exact, x itself where u is 1.
  const F lost = M::select(u > M::number(2.0), M::number(1.0) - (u - x), x - (u - M::number(1.0)));
  const auto is_inner = (u > M::number(0.0)) & (u < M::number(__builtin_inf()));
  const F y = log<M>(u) + M::select(is_inner, lost / u, M::number(0.0));
  return M::select(x == M::number(0.0), x, y);
}

/// x to the y within a unit of f32, if both are such: the product of y and the logarithm is rounded.
template <class M, class F>
F narrow_pow(const F& x, const F& y) {
  const F one = M::number(1.0), zero = M::number(0.0), size = M::abs(x);
  const F half = y * M::number(0.5);
  const auto is_whole = M::floor(y) == y, is_even = M::floor(half) == half;
  const F power = exp2<M>(y * log2<M>(size));
  const F with_sign = M::select(is_whole, M::select(is_even, power, M::copy_sign(power, x)), power);
  // Of a negative number there are whole powers only; of 1 and with an exponent of 0 the result is 1, also
  // for NaN; of -1 also with an infinite exponent.
  const auto has_none = (x < zero) & (size < M::number(__builtin_inf()));
  const F real = M::select(has_none, M::select(is_whole, with_sign, M::number(__builtin_nan(""))), with_sign);
  const auto is_one_anyway = (size == one) & (M::abs(y) == M::number(__builtin_inf()));
  return M::select(x == one, one, M::select(y == zero, one, M::select(is_one_anyway, one, real)));
}

// ---- angles

/// Beyond it the remainder of a division by pi / 2 needs more bits of pi.
inline constexpr double largest_angle = 1e9;

template <class F>
struct Angle {
  F turns, sine, cosine;  ///< of what is left without `turns` quarter turns
};

/// For |x| <= largest_angle.
template <class M, class F>
Angle<F> angle(const F& x) {
  const F n = M::round(x * M::number(0.636619772367581343076));
  const F first = M::mul_add(n, M::number(-1.5707963267948966), x);
  const F r = M::mul_add(n, M::number(1.4973849048591698e-33),
                         M::mul_add(n, M::number(-6.123233995736766e-17), first));
  const F t = r * r;
  const F p =
      polynomial<M>(t, -1.66666666666666324348e-01, 8.33333333332248946124e-03, -1.98412698298579493134e-04,
                    2.75573137070700676789e-06, -2.50507602534068634195e-08, 1.58969099521155010221e-10);
  const F q = polynomial<M>(t, -0.5, 4.16666666666666019037e-02, -1.38888888888741095749e-03,
                            2.48015872894767294178e-05, -2.75573143513906633035e-07,
                            2.08757232129817482790e-09, -1.13596475577881948265e-11);
  return {n, M::mul_add(p * t, r, r), M::mul_add(q, t, M::number(1.0))};
}

/// The sine of x + quarter * pi / 2.
template <class M, class F>
F sine(const F& x, int quarter) {
  const Angle<F> a = angle<M>(x);
  const auto turns = M::to_whole(a.turns) + M::whole(quarter);
  const F y = M::select(M::is_odd(turns), a.cosine, a.sine);
  const F turned = M::select(M::is_odd(M::shift_right(turns, 1)), -y, y);
  return quarter == 0 ? M::select(x == M::number(0.0), x, turned) : turned;  // a zero keeps its sign
}

template <class M, class F>
F tan(const F& x) {
  const Angle<F> a = angle<M>(x);
  const auto is_odd = M::is_odd(M::to_whole(a.turns));
  const F y = M::select(is_odd, -a.cosine, a.sine) / M::select(is_odd, a.sine, a.cosine);
  return M::select(x == M::number(0.0), x, y);
}

/// atan(t) of a quotient that is at most tan(pi / 8), behind an angle of 0, pi / 4 or pi / 2.
template <class M, class F>
F atan(const F& x) {
  const F size = M::abs(x), one = M::number(1.0), zero = M::number(0.0);
  const auto is_large = size > M::number(2.41421356237309504880),
             is_small = size < M::number(0.414213562373095);
  const F above = M::select(is_large, -one, M::select(is_small, size, size - one));
  const F below = M::select(is_large, size, M::select(is_small, one, size + one));
  const F base = M::select(is_large, M::number(1.57079632679489661923),
                           M::select(is_small, zero, M::number(0.785398163397448309616)));
  const F lost = M::select(is_large, M::number(6.123233995736765886e-17),
                           M::select(is_small, zero, M::number(3.061616997868382943e-17)));
  const F t = above / below, z = t * t;
  const F p =
      polynomial<M>(z, -6.485021904942025371773e1, -1.228866684490136173410e2, -7.500855792314704667340e1,
                    -1.615753718733365076637e1, -8.750608600031904122785e-1);
  const F q =
      polynomial<M>(z, 1.945506571482613964425e2, 4.853903996359136964868e2, 4.328810604912902668951e2,
                    1.650270098316988542046e2, 2.485846490142306297962e1, 1.0);
  const F y = base + (M::mul_add(z * p / q, t, t) + lost);
  return M::copy_sign(y, x);
}

}  // namespace tessera::runtime::cpu::doubles
