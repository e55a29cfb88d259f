// Functions of f32 that look numbers up, for code on vectors of 16: a table of 16 numbers is one register, in
// which AVX-512 finds a number for each lane at once. Shorter polynomials do then than those of
// vector_math.h.
//
// M is as there, with M::look_up(table, index): of each lane of `index` the last four bits count.
#pragma once

#include "tessera/kernel/vector_math.h"

namespace tessera::runtime::cpu::tables {

using kernel::math::polynomial;

struct Table {
  double at[16];
};

/// 2 to the i / 16.
inline constexpr Table roots_of_two = {{1, 1.04427373, 1.09050775, 1.13878858, 1.18920708, 1.24185777,
                                        1.29683959, 1.35425556, 1.41421354, 1.47682619, 1.54221082,
                                        1.61049032, 1.68179286, 1.75625217, 1.8340081, 1.91520655}};

/// Added to a number, this leaves it rounded to sixteenths, counted in the last bits.
inline constexpr double to_sixteenths = 786432.0;

/// x as a number of sixteenths and what is left of it; `root` is 2 to the part of them that is no whole
/// number.
template <class F>
struct Sixteenths {
  F whole, root;
};
template <class M, class F>
Sixteenths<F> sixteenths(const F& shifted) {
  return {shifted - M::number(to_sixteenths), M::look_up(roots_of_two, M::bits(shifted))};
}

template <class M, class F>
F exp(const F& given) {
  const F x = kernel::math::limited<M>(given, -104.0, 89.0);
  const Sixteenths<F> n =
      sixteenths<M>(M::mul_add(x, M::number(1.44269504088896341), M::number(to_sixteenths)));
  // ln 2 in two parts: n times the first is exact.
  const F rest =
      M::mul_add(n.whole, M::number(2.12194440054690583e-4), M::mul_add(n.whole, M::number(-0.693359375), x));
  const F power = M::mul_add(polynomial<M>(rest, 0.500009775, 0.166668624) * rest, rest, rest);
  return M::by_power_of_two(M::mul_add(power, n.root, n.root), n.whole);
}

/// u times the part of the normal distribution beyond u, divided by 2 to the u^2 times the float nearest to
/// -1 / (2 ln 2): polynomials of what u has above 0, 1/4, 1/2, 3/4, 1, 3/2, 2, 5/2, 3, 4, 5, 6, 7, 9, 11, 13,
/// found by the first bits of u + 1. So the first four stand at the end.
inline constexpr Table tail_coefficients[] = {
    {0.261578292, 0.308670998, 0.336203992, 0.353328317, 0.364541829, 0.377642542, 0.384596467, 0.388675779,
     0.391254246, 0.394188881, 0.395723462, 0.396621943, 0.0, 0.103508025, 0.174809411, 0.225174353},
    {0.124212824, 0.0703732297, 0.0426252447, 0.0272963606, 0.0183118507, 0.00921157841, 0.00519045023,
     0.00318089919, 0.00207798765, 0.00102009019, 0.000571384327, 0.000350749237, 0.49999997, 0.340173185,
     0.237552211, 0.169906408},
    {-0.0752219856, -0.0374789797, -0.020108344, -0.0114915743, -0.00692227017, -0.00287401862,
     -0.00136884104, -0.000723359408, -0.000413549016, -0.000162293509, -7.54876528e-05, -3.95671996e-05,
     -0.398934275, -0.252895862, -0.164735883, -0.110048138},
    {0.0367165692, 0.0163366999, 0.00786502194, 0.00405460224, 0.00218413887, 0.000761608768, 0.000310243689,
     0.000142518838, 7.04921549e-05, 2.24144351e-05, 8.72309465e-06, 3.93359414e-06, 0.249741077, 0.148721755,
     0.0911650062, 0.057355985},
    {-0.0145964446, -0.00590964174, -0.00259502674, -0.00122389151, -0.000557751569, -0.000168449071,
     -6.00644926e-05, -2.44096173e-05, -9.77764012e-06, -2.60976026e-06, -8.70551673e-07, -3.51048811e-07,
     -0.13001363, -0.072700806, -0.0422830954, -0.025249958},
    {0.0036638414, 0.001388542, 0.000571041368, 0.000252483936, 8.47312622e-05, 2.32154962e-05,
     7.54342091e-06, 2.80755012e-06, 7.9257768e-07, 1.87931079e-07, 5.62733682e-08, 2.24743708e-08,
     0.0482284985, 0.024880575, 0.013909189, 0.00798364356}};

/// The polynomial of the part that u, from 0 to 14.5, is in.
template <class M, class F>
F tail_ratio(const F& u) {
  const auto bits = M::bits(u + M::number(1.0));
  const auto part = M::shift_right(bits, 21);
  const F begin = M::from_bits(M::shift_left(part, 21)) - M::number(1.0), t = u - begin;
  F out = M::look_up(tail_coefficients[5], part);
  for (int i = 5; i-- > 0;) out = M::mul_add(out, t, M::look_up(tail_coefficients[i], part));
  return out;
}

/// x times the normal distribution function of x, also where it is small.
template <class M, class F>
F gelu(const F& x) {
  const F size = M::abs(x), limit = M::number(14.5), u = M::select(size > limit, limit, size);
  // exp(-u^2 / 2) is 2^(n + f), with what the square loses.
  const F square = u * u, lost = M::mul_add(u, u, -square), factor = M::number(-0.7213475108146667);
  const Sixteenths<F> n = sixteenths<M>(M::mul_add(square, factor, M::number(to_sixteenths)));
  const F f = M::mul_add(lost, factor, M::mul_add(square, factor, -n.whole));
  const F power = f * polynomial<M>(f, 0.693147182, 0.240233555, 0.0555050857);
  const F ratio = tail_ratio<M>(u) * n.root;
  const F tail = M::by_power_of_two(M::mul_add(power, ratio, ratio), n.whole);
  // Of minus infinity nothing is left that is a number.
  return M::select(x < M::number(0.0), -(x - x), x) - tail;
}

}  // namespace tessera::runtime::cpu::tables
