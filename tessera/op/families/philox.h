// Random numbers without state: Philox4x32-10 of Salmon et al., "Parallel random numbers: as easy as 1, 2,
// 3". A block of four words depends on a counter and a key alone, so that every element of a tensor has its
// own and any runtime can make any of them.
//
// Written once for numbers (UnsignedWide, double) and for the bodies of kernels (ir::Scalar). What is rounded
// is only +, -, *, /, fma and sqrt, each of which has one right answer: no function of a library, which
// differs from one machine to the next. So the bits are the same on every runtime.
#pragma once

#include <array>
#include <bit>

#include "tessera/op/formula.h"

namespace tessera::op::philox {

namespace f = formula;

// A word is a 32-bit number in 64 bits, a real is of f64.
inline double as_real(UnsignedWide word) { return static_cast<double>(word.v); }
inline UnsignedWide bits_of(double real) { return std::bit_cast<std::uint64_t>(real); }
inline double real_of_bits(UnsignedWide bits) { return std::bit_cast<double>(bits.v); }
inline f::Scalar as_real(const f::Scalar& word) { return f::cast(word, Dtype::f64); }
inline f::Scalar bits_of(const f::Scalar& real) {
  return f::Scalar(ir::scalar_bitcast(Dtype::u64, real.expr(Dtype::f64)));
}
inline f::Scalar real_of_bits(const f::Scalar& bits) {
  return f::Scalar(ir::scalar_bitcast(Dtype::f64, bits.expr(Dtype::u64)));
}

/// A constant of its own; alone a literal has no dtype.
inline UnsignedWide zero_like(UnsignedWide) { return 0; }
inline f::Scalar zero_like(const f::Scalar&) { return f::Scalar(ir::ExprRef(ir::int_const(0, Dtype::u64))); }

template <class Word>
Word low_half(const Word& x) {
  return x & Word(4294967295.0);
}
template <class Word>
Word high_half(const Word& x) {
  return f::shift_right(x, Word(32));
}

/// The block of a counter. The constants are those of the paper; all are exact as literals of doubles.
template <class Word>
std::array<Word, 4> block(std::array<Word, 4> counter, std::array<Word, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const Word first = counter[0] * Word(3528531795.0), second = counter[2] * Word(3449720151.0);
    counter = {high_half(second) ^ counter[1] ^ key[0], low_half(second),
               high_half(first) ^ counter[3] ^ key[1], low_half(first)};
    key = {low_half(key[0] + Word(2654435769.0)), low_half(key[1] + Word(3144134277.0))};
  }
  return counter;
}

/// The block of element `number` of the stream of a seed: two 64-bit numbers.
template <class Word>
std::array<Word, 2> pair_of(const Word& seed, const Word& number) {
  const auto words = block<Word>({low_half(number), high_half(number), zero_like(number), zero_like(number)},
                                 {low_half(seed), high_half(seed)});
  return {f::shift_left(words[1], Word(32)) | words[0], f::shift_left(words[3], Word(32)) | words[2]};
}

/// In [0, 1): the upper `digits` bits of a 64-bit number as a fraction.
template <class Word>
auto fraction(const Word& bits, int digits) {
  return as_real(f::shift_right(bits, Word(64 - digits))) * std::ldexp(1.0, -digits);
}

// ---- the normal distribution, by Box and Muller

/// c[0] + x * (c[1] + x * (c[2] + …))
template <class Real, std::size_t n>
Real polynomial(const Real& x, const double (&c)[n]) {
  Real out(c[n - 1]);
  for (std::size_t i = n - 1; i-- > 0;) out = f::fma(x, out, Real(c[i]));
  return out;
}

/// log(k / 2^53) for an integer k in 1 .. 2^53: the exponent and the series of the logarithm of the mantissa,
/// 2 (s + s^3 / 3 + s^5 / 5 + …) with s = (m - 1) / (m + 1), |s| < 0.172.
template <class Word>
auto log_of_fraction(const Word& k) {
  const Word bits = bits_of(as_real(k));
  const auto m = real_of_bits((bits & Word(4503599627370495.0)) | Word(4607182418800017408.0));  // in [1, 2)
  const auto is_large = m > 1.4142135623730951;
  const auto near_one = f::select(is_large, m * 0.5, m);
  const auto exponent = as_real(f::shift_right(bits, Word(52))) - 1076.0;
  const auto s = (near_one - 1.0) / (near_one + 1.0);
  static constexpr double odd[] = {1.0,      1.0 / 3,  1.0 / 5,  1.0 / 7,  1.0 / 9, 1.0 / 11,
                                   1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21};
  return f::fma(f::select(is_large, exponent + 1.0, exponent),
                std::remove_const_t<decltype(s)>(0.6931471805599453), 2.0 * s * polynomial(s * s, odd));
}

/// cos(2 pi k / 2^53) for an integer k in 0 .. 2^53 - 1: in the nearest quarter of the circle, by the series
/// of sine and cosine.
template <class Word>
auto cos_of_turns(const Word& k) {
  const auto quarters = as_real(k) * 0x1p-51;
  const auto quarter = f::floor(quarters + 0.5);
  const auto x = (quarters - quarter) * 1.5707963267948966;  // |x| < 0.786
  static constexpr double of_sin[] = {
      -1.0 / 6,        1.0 / 120,          -1.0 / 5040,         1.0 / 362880,
      -1.0 / 39916800, 1.0 / 6227020800.0, -1.0 / 1307674368e3, 1.0 / 355687428096e3};
  static constexpr double of_cos[] = {
      -1.0 / 2,       1.0 / 24,          -1.0 / 720,           1.0 / 40320,
      -1.0 / 3628800, 1.0 / 479001600.0, -1.0 / 87178291200.0, 1.0 / 20922789888e3};
  const auto square = x * x;
  const auto sine = f::fma(x * square, polynomial(square, of_sin), x);
  const auto cosine = f::fma(square, polynomial(square, of_cos), std::remove_const_t<decltype(square)>(1.0));
  const auto size = f::select(f::either(quarter == 1.0, quarter == 3.0), sine, cosine);
  return f::select(f::either(quarter == 1.0, quarter == 2.0), -size, size);
}

/// A number of the normal distribution from the two of `pair_of`.
template <class Word>
auto normal(const std::array<Word, 2>& pair) {
  const auto radius = f::sqrt(-2.0 * log_of_fraction(f::shift_right(pair[0], Word(11)) + Word(1)));
  return radius * cos_of_turns(f::shift_right(pair[1], Word(11)));
}

}  // namespace tessera::op::philox
