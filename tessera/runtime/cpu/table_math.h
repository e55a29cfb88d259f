// Functions of f32 that look numbers up, for code on vectors of 16: a table of 16 numbers is one register, in
// which AVX-512 finds a number for each lane at once. Shorter polynomials do then than those of
// vector_math.h.
//
// M is as there, with M::look_up(table, index): of each lane of `index` the last four bits count.
#pragma once

#include <type_traits>

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

/// The place of u, from 0 to below 15, among 16 parts that begin at 0, 1/4, 1/2, 3/4, 1, 3/2, 2, 5/2, 3, 4,
/// 5, 6, 7, 9, 11, 13, found by the first bits of u + 1: so the first four stand at the end of a table. And
/// what u has above that beginning.
template <class F, class Index>
struct Place {
  Index part;
  F above;
};
template <class M, class F>
auto place_of(const F& u) {
  const auto part = M::shift_right(M::bits(u + M::number(1.0)), 21);
  const F begin = M::from_bits(M::shift_left(part, 21)) - M::number(1.0);
  return Place<F, std::decay_t<decltype(part)>>{part, u - begin};
}

/// The polynomial, whose coefficients a table has for each part, of what u has above its part.
template <class M, class F, std::size_t count>
F polynomial_at(const Table (&coefficients)[count], const F& u) {
  const auto place = place_of<M>(u);
  F out = M::look_up(coefficients[count - 1], place.part);
  for (std::size_t i = count - 1; i-- > 0;)
    out = M::mul_add(out, place.above, M::look_up(coefficients[i], place.part));
  return out;
}

inline constexpr Table tanh_coefficients[] = {
    {0.761594176, 0.905148268, 0.964027584, 0.986614287, 0.995054781, 0.999329329, 0.999909222, 0.999987721,
     0.999998331, 1, 1, 1, 0, 0.244918659, 0.462117165, 0.635148942},
    {0.419971764, 0.180704817, 0.0706503317, 0.026593823, 0.00986382272, 0.00133885862, 0.000180305273,
     2.38783559e-05, 3.53213795e-06, 0, 0, 0, 1, 0.940015793, 0.78644526, 0.596588731},
    {-0.319798201, -0.1635288, -0.0680981874, -0.026273232, -0.00978814624, -0.00131515646, -0.000166615922,
     -1.64389548e-05, -4.50432026e-06, 0, 0, 0, -1.0973024e-06, -0.230273873, -0.363309354, -0.379059225},
    {0.103250794, 0.0875533521, 0.0420182869, 0.0173336994, 0.006336377, 0.000782924588, 5.68635187e-05,
     -1.83593675e-05, 4.66463462e-06, 0, 0, 0, -0.333270192, -0.256121844, -0.0963785648, 0.0441871881},
    {0.0286002867, -0.024310695, -0.0175732318, -0.00923866127, -0.00283664302, -0.000224382777,
     6.45490873e-05, 5.89615775e-05, -3.35622917e-06, 0, 0, 0, -0.00118375779, 0.133100852, 0.182351425,
     0.0814434588},
    {-0.0465880074, -0.00247994764, 0.00435486343, 0.00492457626, 0.000802239636, -3.78399673e-05,
     -8.95457197e-05, -5.67491152e-05, 1.3215631e-06, 0, 0, 0, 0.143084466, 0.0962344334, -0.0947408527,
     -0.000203249059},
    {0.0179057568, 0.00395944901, -0.000252748345, -0.00200556708, -0.000103104408, 3.55000375e-05,
     3.29508512e-05, 1.93326323e-05, -2.08152059e-07, 0, 0, 0, -0.0369773731, -0.103788689, 0.0550616868,
     -0.0784151256}};

/// Within 2 units of the last place.
template <class M, class F>
F tanh(const F& x) {
  const F size = M::abs(x), limit = M::number(13.0), u = M::select(size > limit, limit, size);
  return M::copy_sign(polynomial_at<M>(tanh_coefficients, u), x);
}

/// u times the part of the normal distribution beyond u, divided by 2 to the u^2 times the float nearest to
/// -1 / (2 ln 2).
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

/// x times the normal distribution function of x, also where it is small.
template <class M, class F>
F gelu(const F& x) {
  const F size = M::abs(x), limit = M::number(14.5), u = M::select(size > limit, limit, size);
  // exp(-u^2 / 2) is 2^(n + f), with what the square loses.
  const F square = u * u, lost = M::mul_add(u, u, -square), factor = M::number(-0.7213475108146667);
  const Sixteenths<F> n = sixteenths<M>(M::mul_add(square, factor, M::number(to_sixteenths)));
  const F f = M::mul_add(lost, factor, M::mul_add(square, factor, -n.whole));
  const F power = f * polynomial<M>(f, 0.693147182, 0.240233555, 0.0555050857);
  const F ratio = polynomial_at<M>(tail_coefficients, u) * n.root;
  const F tail = M::by_power_of_two(M::mul_add(power, ratio, ratio), n.whole);
  // Of minus infinity nothing is left that is a number.
  return M::select(x < M::number(0.0), -(x - x), x) - tail;
}

}  // namespace tessera::runtime::cpu::tables
