// Functions of f32 without branches, written once: on float they are loops that the C++ compiler vectorises,
// on the values of a code generator they are the code it generates.
//
// M says what the arithmetic is done with: types F (float), I (32-bit integer) and B (truth), with operators,
// and the functions named below. The
// polynomials are minimax fits of the relative error; what each function keeps is tested by a sweep
// (docs/kernel.md).
#pragma once

namespace tessera::kernel::math {

/// a0 + a1 t + a2 t^2 + …
template <class M, class F>
F polynomial(const F& t, double a0) {
  (void)t;
  return M::number(a0);
}
template <class M, class F, class... Rest>
F polynomial(const F& t, double a0, double a1, Rest... rest) {
  return M::mul_add(polynomial<M>(t, a1, rest...), t, M::number(a0));
}

/// 2 to the n, for integral -126 <= n <= 127.
template <class M, class F>
F power_of_two(const F& n) {
  return M::from_bits(M::shift_left(M::to_int(n) + M::integer(127), 23));
}

/// x = n ln 2 + rest with |rest| <= ln 2 / 2.
template <class F>
struct Halved {
  F n, rest;
};
template <class M, class F>
Halved<F> by_ln2(const F& x) {
  const F n = M::round(x * M::number(1.44269504088896341));
  // ln 2 in two parts: n times the first is exact.
  const F rest = M::mul_add(n, M::number(-0.693359375), x);
  return {n, M::mul_add(n, M::number(2.12194440054690583e-4), rest)};
}

/// exp(r) - 1 for |r| <= ln 2 / 2.
template <class M, class F>
F small_expm1(const F& r) {
  const F p =
      polynomial<M>(r, 0.499999995517, 0.166665772171, 0.0416668538408, 0.0083631575561, 0.00139012689103);
  return M::mul_add(p * r, r, r);
}

template <class M, class F>
F limited(const F& x, double low, double high) {  // NaN stays
  const F above = M::select(x < M::number(low), M::number(low), x);
  return M::select(above > M::number(high), M::number(high), above);
}

/// (1 + p) 2^n, in two steps, so that results below the normal numbers are right. What an M does that has no
/// instruction for it.
template <class M, class F>
F scaled_in_steps(const F& p, const F& n) {
  const F half = M::floor(n * M::number(0.5)), first = power_of_two<M>(half);
  return M::mul_add(p, first, first) * power_of_two<M>(n - half);
}

/// p 2^n in the same way.
template <class M, class F>
F by_power_in_steps(const F& p, const F& n) {
  const F half = M::floor(n * M::number(0.5));
  return p * power_of_two<M>(half) * power_of_two<M>(n - half);
}

template <class M, class F>
F exp(const F& given) {
  const F x = limited<M>(given, -104.0, 89.0);
  const Halved<F> h = by_ln2<M>(x);
  return M::scaled(small_expm1<M>(h.rest), h.n);
}

template <class M, class F>
F exp2(const F& given) {
  const F x = limited<M>(given, -151.0, 129.0);
  const F n = M::round(x);
  return M::scaled(small_expm1<M>((x - n) * M::number(0.693147180559945309)), n);
}

template <class M, class F>
F expm1(const F& given) {
  const F x = limited<M>(given, -20.0, 89.0);
  const Halved<F> h = by_ln2<M>(x);
  // With half the power, so that it is finite where the result is.
  const F power = power_of_two<M>(h.n - M::number(1.0));
  const F half = M::mul_add(small_expm1<M>(h.rest), power, power - M::number(0.5));
  const F y = half + half;
  return M::select(given == M::number(0.0), given, y);
}

/// x = 2^n (1 + rest) with 1 + rest from sqrt(1/2) to sqrt(2), for positive finite x.
template <class M, class F>
Halved<F> by_power(const F& given) {
  const auto is_tiny = given < M::number(1.17549435082e-38);
  const F x = M::select(is_tiny, given * M::number(8388608.0), given);
  const auto bits = M::bits(x);
  const auto shifted = bits - M::integer(0x3f3504f3);  // sqrt(1/2) is 0
  const auto exponent = M::shift_right(shifted, 23);
  const F fraction = M::from_bits(bits - M::shift_left(exponent, 23));
  const F n = M::to_float(exponent);
  return {M::select(is_tiny, n - M::number(23.0), n), fraction - M::number(1.0)};
}

/// log(1 + r) - r for r from sqrt(1/2) - 1 to sqrt(2) - 1.
template <class M, class F>
F log_rest(const F& r) {
  const F p = polynomial<M>(r, 0.333333299504, -0.250003039581, 0.20001199679, -0.166415783347,
                            0.142099831923, -0.129893592803, 0.126554244489, -0.0797360005135);
  const F square = r * r;
  return M::mul_add(p * r, square, square * M::number(-0.5));
}

/// What a logarithm is where its argument is not positive and finite.
template <class M, class F>
F log_edges(const F& x, const F& y) {
  const F infinity = M::number(__builtin_inf());
  const F at_zero = M::select(x == M::number(0.0), -infinity, y);
  const F negative = M::select(x < M::number(0.0), M::number(__builtin_nan("")), at_zero);
  return M::select(x < infinity, negative, x);  // infinity and NaN
}

template <class M, class F>
F log(const F& x) {
  const Halved<F> h = by_power<M>(x);
  const F low = M::mul_add(h.n, M::number(-2.12194440054690583e-4), log_rest<M>(h.rest));
  return log_edges<M>(x, M::mul_add(h.n, M::number(0.693359375), h.rest + low));
}

template <class M, class F>
F log2(const F& x) {
  const Halved<F> h = by_power<M>(x);
  const F y = h.rest + log_rest<M>(h.rest);
  return log_edges<M>(x, M::mul_add(y, M::number(1.44269504088896341), h.n));
}

template <class M, class F>
F log1p(const F& x) {
  const F u = x + M::number(1.0);
  // What was lost in u: zero where u is exact, x itself where u is 1.
  const F lost = x - (u - M::number(1.0));
  const auto is_inner = (u > M::number(0.0)) & (u < M::number(__builtin_inf()));
  const F y = log<M>(u) + M::select(is_inner, lost / u, M::number(0.0));
  return M::select(x == M::number(0.0), x, y);
}

template <class M, class F>
F tanh(const F& given) {
  const F x = limited<M>(given, -9.02, 9.02), t = x * x;
  const F p = polynomial<M>(t, 0.999999993377, 0.13083166519, 0.00310301113615, 1.11443346664e-5,
                            -2.01841604275e-8, 5.25781108039e-11, -8.43599246666e-14);
  const F q = polynomial<M>(t, 1.0, 0.464164935458, 0.0244914226326, 0.000254476398122);
  return limited<M>(x * p / q, -1.0, 1.0);  // rounding may pass 1, of which others have no logarithm or root
}

/// Within 2 units of the last place: near 0 what is added to x, elsewhere what is missing to 1.
template <class M, class F>
F precise_tanh(const F& x) {
  const F size = M::abs(x), t = x * x;
  const F p = polynomial<M>(t, -0.333333331592, 0.133333014208, -0.0539587482949, 0.0217647560741,
                            -0.00833035636338, 0.00227741853465);
  const F near = M::mul_add(p * t, x, x);
  const F missing = M::number(2.0) / (exp<M>(size + size) + M::number(1.0));
  return M::select(size < M::number(0.63), near, M::copy_sign(M::number(1.0) - missing, x));
}

template <class M, class F>
F erf(const F& given) {
  const F x = limited<M>(given, -3.83, 3.83), t = x * x;  // beyond it is 1, or a unit less
  const F p = polynomial<M>(t, 1.12837910848, 0.20073298096, 0.0506791581823, 0.00373346154344,
                            0.000142399862011, -1.95474235661e-6, 1.98123472934e-8);
  const F q = polynomial<M>(t, 1.0, 0.511226599927, 0.115331176043, 0.0144203787127, 0.000963053112043);
  return limited<M>(x * p / q, -1.0, 1.0);  // rounding may pass 1, of which others have no logarithm or root
}

/// The part of the normal distribution beyond u, from 0 to 14.5, divided by exp(-u^2 / 2).
template <class M, class F>
F tail_ratio(const F& u) {
  const F p =
      polynomial<M>(u, 0.500000002951, 0.438292599431, 0.183233230596, 0.04063253518, 0.00411619185933);
  const F q =
      polynomial<M>(u, 1.0, 1.67447017941, 1.20249557981, 0.469465550927, 0.101857108779, 0.0103176431528);
  return p / q;
}

/// The part of the normal distribution beyond u >= 0, as two factors: each is right to its last places also
/// where the product is too small to be.
template <class F>
struct Tail {
  F power, ratio;
};
template <class M, class F>
Tail<F> normal_tail(const F& given, double limit = 14.5) {
  const F u = M::select(given > M::number(limit), M::number(limit), given);
  // exp(-u^2 / 2) with what the square loses, then what is left of the tail, which is smooth.
  const F square = u * u, lost = M::mul_add(u, u, -square);
  const Halved<F> h = by_ln2<M>(square * M::number(-0.5));
  const F power = M::scaled(small_expm1<M>(M::mul_add(lost, M::number(-0.5), h.rest)), h.n);
  return {power, tail_ratio<M>(u)};
}

template <class M, class F>
F erfc(const F& x) {
  const F size = limited<M>(M::abs(x), 0.0, 10.25);
  // exp(-size^2) in two factors: the square of what has 12 binary digits is exact, the rest is small.
  const F high = M::round(size * M::number(256.0)) * M::number(0.00390625);
  const F rest = (size - high) * (size + high);
  const Halved<F> h = by_ln2<M>(-(high * high));
  const F main = M::scaled(small_expm1<M>(h.rest), h.n);
  const F power = M::mul_add(main, small_expm1<M>(-rest), main);
  const F ratio = tail_ratio<M>(size * M::number(1.41421356237309505));
  const F beyond = power * (ratio + ratio);
  return M::select(x < M::number(0.0), M::number(2.0) - beyond, beyond);
}

/// x times the normal distribution function of x: at most 5.2 units of the last place off, also where it is
/// small.
template <class M, class F>
F gelu(const F& x) {
  const F size = M::abs(x), limit = M::number(14.5), u = M::select(size > limit, limit, size);
  // exp(-u^2 / 2) is 2^(n + f), with what the square loses.
  const F square = u * u, lost = M::mul_add(u, u, -square), factor = M::number(-0.7213475108146667);
  const F n = M::round(square * factor);
  const F f = M::mul_add(lost, factor, M::mul_add(square, factor, -n));
  const F power = f * polynomial<M>(f, 0.6931472420692444, 0.24022652208805084, 0.05550309643149376,
                                    0.009617689065635204, 0.0013406950747594237, 0.00015595460718031973);
  // What is left of the tail, and what the factor above loses, is smooth in 1 / (u + 2.5).
  const F sum = u + M::number(2.5), rest = u - (sum - M::number(2.5));
  const F ratio =
      polynomial<M>(M::reciprocal(sum, rest), -1.3051461792201735e-5, 0.39981234073638916, 0.9725709557533264,
                    2.4879307746887207, -0.5711302757263184, 24.876096725463867, -92.1522216796875,
                    123.70294189453125, -61.15803146362305);
  const F tail = M::by_power_of_two(M::mul_add(power, ratio, ratio) * u, n);
  // Of minus infinity nothing is left that is a number.
  return M::select(x > M::number(0.0), x - tail, M::mul_add(x, M::number(0.0), -tail));
}

/// The same, within a unit of f32 if M computes in f64, whose range it needs.
template <class M, class F>
F precise_gelu(const F& x) {
  const Tail<F> tail = normal_tail<M>(M::abs(x), 37.0);
  const F part = tail.power * tail.ratio;
  // Of minus infinity nothing is left that is a number.
  const F below = M::mul_add(x, M::number(0.0), x * part);
  return M::select(x > M::number(0.0), x * (M::number(1.0) - part), below);
}

/// The same for erfc.
template <class M, class F>
F precise_erfc(const F& x) {
  const Tail<F> tail = normal_tail<M>(M::abs(x) * M::number(1.41421356237309505), 37.0);
  const F part = tail.power * tail.ratio, beyond = part + part;
  return M::select(x < M::number(0.0), M::number(2.0) - beyond, beyond);
}

template <class M, class F>
F precise_erf(const F& x) {
  const F size = M::abs(x), t = x * x;
  const F p = polynomial<M>(t, 0.128379166202, -0.376126313292, 0.112836740554, -0.0268587189761,
                            0.00520012715157, -0.000813804268964, 8.36558655974e-5);
  const F near = M::mul_add(p, x, x);
  const Tail<F> tail = normal_tail<M>(size * M::number(1.41421356237309505));
  const F missing = tail.power * (tail.ratio + tail.ratio);
  return M::select(size < M::number(0.93), near, M::copy_sign(M::number(1.0) - missing, x));
}

/// Beyond it sine and cosine need more bits of pi than its three parts have.
inline constexpr double largest_angle = 40000.0;

/// pi / 2 as the sum of three floats.
inline constexpr double half_pi[] = {1.57079637050628662, -4.37113900018624283e-8, -1.71512449147234213e-15};

/// x - n pi / 2, where M can multiply and add in one rounding.
template <class M, class F>
F reduced_angle(const F& x, const F& n) {
  const F first = M::mul_add(n, M::number(-half_pi[0]), x);
  return M::mul_add(n, M::number(-half_pi[2]), M::mul_add(n, M::number(-half_pi[1]), first));
}

/// The sine of x + quarter * pi / 2, for |x| <= largest_angle.
template <class M, class F>
F sine(const F& x, int quarter) {
  const F n = M::round(x * M::number(0.636619772367581343));
  const F r = M::without_quarter_turns(x, n);
  const F t = r * r;
  const F odd = M::mul_add(polynomial<M>(t, -0.166666646404, 0.00833274323532, -0.000195868772687) * t, r, r);
  const F even = M::mul_add(polynomial<M>(t, 0.041666664647, -0.00138882992184, 2.45471246542e-5) * t, t,
                            M::mul_add(t, M::number(-0.5), M::number(1.0)));
  const auto turns = M::to_int(n) + M::integer(quarter);
  const F y = M::select(M::is_odd(turns), even, odd);
  const F sine_of_turned = M::select(M::is_odd(M::shift_right(turns, 1)), -y, y);
  // A zero keeps its sign.
  return quarter == 0 ? M::select(x == M::number(0.0), x, sine_of_turned) : sine_of_turned;
}

}  // namespace tessera::kernel::math
