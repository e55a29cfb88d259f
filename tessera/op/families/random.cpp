// Random numbers as functions: element i depends on `seed` and `offset` + i alone (philox.h). A caller that
// wants new numbers moves `offset` on by as many as it took. Equal calls are therefore one call.
#include "tessera/op/families/make.h"
#include "tessera/op/families/philox.h"

using namespace tessera;
using namespace tessera::op;

namespace f = tessera::op::formula;

namespace {

enum class Distribution : std::uint8_t { uniform, normal };

Result<ValueTypes> infer_random(const CallInfo& call) {
  const Dtype dtype = call.dtype("dtype");
  if (!call.card().T.contains(dtype))
    return call.error("'dtype' is ", dtype, ", expected one of f64 f32 f16 bf16");
  return ValueTypes{{dtype, call.shape("shape")}};
}

/// How many binary digits a number of [0, 1) has in a dtype: with more, rounding could make it 1.
int digits_of(Dtype dtype) {
  if (dtype == Dtype::f64) return 53;
  if (dtype == Dtype::f32) return 24;
  return dtype == Dtype::f16 ? 11 : 8;
}

/// `a` and `b` are low and high, or mean and standard deviation.
template <Distribution which, class Word, class Real>
Real element(const Word& seed, const Word& number, const Real& a, const Real& b, Dtype dtype) {
  const auto pair = philox::pair_of(seed, number);
  if constexpr (which == Distribution::uniform)
    return f::fma(philox::fraction(pair[0], digits_of(dtype)), b - a, a);
  else
    return f::fma(philox::normal(pair), b, a);
}

template <class T>
T scalar_of(const Array& array) {
  T out;
  std::memcpy(&out, array.at(array.layout.offset), sizeof out);
  return out;
}

template <Distribution which>
Result<void> run_random(const CallInfo&, std::span<const Array> inputs, std::span<const Array> results) {
  const Array& y = results[0];
  const auto a = scalar_of<double>(inputs[0]), b = scalar_of<double>(inputs[1]);
  const UnsignedWide seed(scalar_of<std::int64_t>(inputs[2])), offset(scalar_of<std::int64_t>(inputs[3]));
  const auto store = storer<double>(y.dtype);
  UnsignedWide number = offset;
  for_each_offset<1>(y.shape(), {&y.layout}, [&](const auto& at) {
    const double value = element<which>(seed, number, a, b, y.dtype);
    store(y.data, at[0], 1, 1, &value);
    number = number + UnsignedWide(1);
  });
  return {};
}

template <Distribution which>
ir::Scalar random_element(const CallInfo& call, const Place& at, std::span<const ir::Scalar> in) {
  const ir::Scalar seed = f::cast(in[2], Dtype::u64);
  const ir::Scalar number = f::cast(in[3], Dtype::u64) + f::cast(at.number, Dtype::u64);
  return element<which>(seed, number, in[0], in[1], call.dtype("dtype"));
}

constexpr Input uniform_inputs[] = {{"low", "f64", InputKind::scalar, 0},
                                    {"high", "f64", InputKind::scalar, 1},
                                    {"seed", "i64", InputKind::scalar, 0},
                                    {"offset", "i64", InputKind::scalar, 0}};
constexpr Input normal_inputs[] = {{"mean", "f64", InputKind::scalar, 0},
                                   {"std", "f64", InputKind::scalar, 1},
                                   {"seed", "i64", InputKind::scalar, 0},
                                   {"offset", "i64", InputKind::scalar, 0}};
constexpr AttributeSpec random_attributes[] = {
    {"shape", AttributeKind::shape, true},
    {"dtype", AttributeKind::dtype, false, static_cast<std::int64_t>(Dtype::f32)}};

constexpr Card random_family[] = {
    {.name = "random_normal",
     .summary = "numbers of the normal distribution; element i depends on `seed` and `offset` + i alone, the "
                "same bits everywhere",
     .inputs = normal_inputs,
     .attributes = random_attributes,
     .traits = {.indexed = true},
     .spellings = "RandomNormal randn",
     .oracle = "none: Philox4x32-10 is in neither torch for CPUs nor NumPy; Random123's known answers are in "
               "families/random_test.cpp",
     .infer = infer_random,
     .reference = run_random<Distribution::normal>,
     .no_gradient = "`mean` and `std` are settings",
     .indexed = random_element<Distribution::normal>},
    {.name = "random_uniform",
     .summary = "low + u * (high - low), u uniform in [0, 1); element i depends on `seed` and `offset` + i "
                "alone, the same bits everywhere",
     .inputs = uniform_inputs,
     .attributes = random_attributes,
     .traits = {.indexed = true},
     .spellings = "RandomUniform rand",
     .oracle = "none: Philox4x32-10 is in neither torch for CPUs nor NumPy; Random123's known answers are in "
               "families/random_test.cpp",
     .infer = infer_random,
     .reference = run_random<Distribution::uniform>,
     .no_gradient = "`low` and `high` are settings",
     .indexed = random_element<Distribution::uniform>},
};

}  // namespace

std::span<const Card> tessera::op::random_cards() { return random_family; }
