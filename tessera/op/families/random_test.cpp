#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "tessera/op/families/philox.h"
#include "tests/support/op_call.h"

using namespace tessera;
using namespace tessera::op;
using namespace tessera::fixture;

namespace {

using Words = std::array<UnsignedWide, 4>;

HostTensor integer(std::int64_t value) {
  return HostTensor::of<std::int64_t>(Dtype::i64, {}, std::vector{value});
}

HostTensor random(std::string_view op, double a, double b, std::int64_t seed, std::int64_t offset,
                  Shape shape, Dtype dtype = Dtype::f64) {
  return call(op, {tensor({}, {a}), tensor({}, {b}), integer(seed), integer(offset)},
              {{"shape", std::move(shape)}, {"dtype", dtype}});
}

TEST(Philox, GivesTheKnownAnswersOfRandom123) {
  EXPECT_EQ(philox::block<UnsignedWide>({0, 0, 0, 0}, {0, 0}),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox::block<UnsignedWide>({ones, ones, ones, ones}, {ones, ones}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(
      philox::block<UnsignedWide>({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
      (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, OnScalarsIsPhiloxOnNumbers) {
  const auto word = [](std::int64_t value) {
    return ir::Scalar(ir::ExprRef(ir::int_const(value, Dtype::u64)));
  };
  const auto words =
      philox::block<ir::Scalar>({word(0x243f6a88), word(0x85a308d3), word(0x13198a2e), word(0x03707344)},
                                {word(0xa4093822), word(0x299f31d0)});
  const std::int64_t expected[] = {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1};
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto value =
        evaluate_scalar(*words[i].expr(Dtype::u64), [](const ir::Expr&) { return std::nullopt; });
    ASSERT_TRUE(value);
    EXPECT_EQ(value->integer, expected[i]) << "word " << i;
  }
}

TEST(Philox, FixedFormulasAreLogarithmAndCosine) {
  const std::uint64_t top = std::uint64_t{1} << 53;
  std::vector<std::uint64_t> values{1, 2, 3, top, top - 1, top / 2, top / 2 + 1, top / 4, top / 8 * 3};
  for (std::uint64_t i = 0; i < 10000; ++i) values.push_back((i * 0x9E3779B97F4A7C15ULL) >> 11 | 1);
  for (const std::uint64_t k : values) {
    const double u = static_cast<double>(k) * 0x1p-53;
    const double expected_log = std::log(u);
    EXPECT_NEAR(philox::log_of_fraction(UnsignedWide(k)), expected_log, 1e-15 * std::abs(expected_log) * 2)
        << k;
    if (k == top) continue;
    EXPECT_NEAR(philox::cos_of_turns(UnsignedWide(k)), std::cos(2 * std::numbers::pi * u), 1e-15) << k;
  }
}

TEST(Random, ElementsDependOnSeedAndPlaceAlone) {
  for (const char* op : {"random_uniform", "random_normal"}) {
    const HostTensor whole = random(op, 0, 1, 42, 0, {4, 5}), part = random(op, 0, 1, 42, 7, {6});
    for (std::size_t i = 0; i < 6; ++i)
      EXPECT_EQ(part.values<double>()[i], whole.values<double>()[7 + i]) << op << " " << i;
    const HostTensor other = random(op, 0, 1, 43, 0, {4, 5});
    for (std::size_t i = 0; i < 20; ++i)
      EXPECT_NE(other.values<double>()[i], whole.values<double>()[i]) << op << " " << i;
  }
}

TEST(Random, FirstNumbersAreThoseOfTheKnownAnswer) {
  // The block of zeros: 0xe169c58d6627e8d5 and 0x9b00dbd8bc57ac4c.
  const double u = static_cast<double>(0xe169c58d6627e8d5ULL >> 11) * 0x1p-53;
  EXPECT_EQ(random("random_uniform", 0, 1, 0, 0, {1}).values<double>()[0], u);
  EXPECT_EQ(random("random_uniform", -2, 6, 0, 0, {1}).values<double>()[0], std::fma(u, 8, -2));
  EXPECT_EQ(random("random_uniform", 0, 1, 0, 0, {1}, Dtype::f32).values<float>()[0],
            static_cast<float>(0xe169c5) * 0x1p-24F);
  const double v = static_cast<double>(0x9b00dbd8bc57ac4cULL >> 11) * 0x1p-53;
  const double z = std::sqrt(-2 * std::log(u + 0x1p-53)) * std::cos(2 * std::numbers::pi * v);
  EXPECT_NEAR(random("random_normal", 0, 1, 0, 0, {1}).values<double>()[0], z, 1e-15);
  EXPECT_NEAR(random("random_normal", 3, 2, 0, 0, {1}).values<double>()[0], 2 * z + 3, 1e-14);
}

TEST(Random, BitsAreTheSameEverywhere) {
  // Computed apart from this code, in Python; the last bits of the normal ones are those of the fixed
  // formulas.
  const double uniform[] = {0x1.be5b11c962984p-2, 0x1.93caddb26899p-5, 0x1.ed97815ea82a8p-2,
                            0x1.c4b507dc13246p-2, 0x1.fab261861b26p-2, 0x1.9e3e1a7bff83ep-2};
  const double normal[] = {-0x1.41774f55eb259p+0, 0x1.19b274ea5c3c2p+1, -0x1.9ec94d676f14cp-8,
                           0x1.795961934e7ccp-1,  0x1.2c3ab7428170ap+0, -0x1.3ec0d06356a16p+0};
  const HostTensor u = random("random_uniform", 0, 1, 2024, 1, {6}),
                   n = random("random_normal", 0, 1, 2024, 1, {6});
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(u.values<double>()[i], uniform[i]) << i;
    EXPECT_EQ(n.values<double>()[i], normal[i]) << i;
  }
}

TEST(Random, CountersWrapAroundTheEndOf64Bits) {
  constexpr std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t highest = std::numeric_limits<std::int64_t>::max();
  const HostTensor over = random("random_uniform", 0, 1, lowest, highest, {2});
  EXPECT_EQ(over.values<double>()[1],
            random("random_uniform", 0, 1, lowest, lowest, {1}).values<double>()[0]);
  const HostTensor around = random("random_uniform", 0, 1, -1, -1, {2});
  EXPECT_EQ(around.values<double>()[1], random("random_uniform", 0, 1, -1, 0, {1}).values<double>()[0]);
}

TEST(Random, UniformNumbersFillTheirRangeAndNeverReachItsEnd) {
  for (Dtype dtype : {Dtype::f64, Dtype::f32, Dtype::f16, Dtype::bf16}) {
    const auto values = doubles(random("random_uniform", 0, 1, 1, 0, {100, 1000}, dtype));
    double mean = 0, square = 0;
    for (const double v : values) {
      ASSERT_GE(v, 0) << to_string(dtype);
      ASSERT_LT(v, 1) << to_string(dtype);
      mean += v / 1e5;
      square += v * v / 1e5;
    }
    EXPECT_NEAR(mean, 0.5, 0.005) << to_string(dtype);
    EXPECT_NEAR(square - mean * mean, 1.0 / 12, 0.002) << to_string(dtype);
  }
}

TEST(Random, NormalNumbersHaveTheirDistribution) {
  auto values = doubles(random("random_normal", 0, 1, 3, 0, {100000}));
  std::sort(values.begin(), values.end());
  double largest = 0;  // the distance of Kolmogorov and Smirnov
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double expected = 0.5 * std::erfc(-values[i] / std::numbers::sqrt2);
    largest = std::max(largest, std::abs(expected - static_cast<double>(i) / 1e5));
  }
  EXPECT_LT(largest, 0.0061);  // exceeded once in a thousand seeds
}

TEST(Random, TakesAnyShapeAndSaysWhatIsWrong) {
  EXPECT_EQ(random("random_normal", 0, 1, 0, 0, {}).size(), 1);
  EXPECT_EQ(random("random_normal", 0, 1, 0, 0, {3, 0}).size(), 0);
  const ValueTypes scalars{{Dtype::f64, {}}, {Dtype::f64, {}}, {Dtype::i64, {}}, {Dtype::i64, {}}};
  EXPECT_EQ(inferred("random_uniform", scalars, {{"shape", Shape{2, 3}}}), "f32[2, 3]");
  EXPECT_EQ(inferred("random_uniform", scalars, {{"shape", Shape{2}}, {"dtype", Dtype::i32}}),
            "random_uniform: 'dtype' is i32, expected one of f64 f32 f16 bf16");
  EXPECT_EQ(inferred("random_normal", scalars, {{"shape", Shape{2, -3}}}),
            "random_normal: the result would have shape [2, -3]");
  EXPECT_EQ(inferred("random_normal", scalars), "random_normal: needs the attribute 'shape'");
  ValueTypes wrong = scalars;
  wrong[2].dtype = Dtype::i32;
  EXPECT_EQ(inferred("random_normal", wrong, {{"shape", Shape{2}}}),
            "random_normal: input 'seed' has dtype i32, expected one of i64");
  wrong = scalars;
  wrong[1].shape = {2};
  EXPECT_EQ(inferred("random_normal", wrong, {{"shape", Shape{2}}}),
            "random_normal: input 'std' must be a scalar, got f64[2]");
}

}  // namespace
