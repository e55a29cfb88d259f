#include "tessera/ir/dim.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "tessera/base/checked.h"

using namespace tessera;
using namespace tessera::ir;

namespace {

const Ref<Var> n = size_symbol("N"), m = size_symbol("M", {1, 64}), k = size_symbol("K", {1, {}});
const Dim N = Dim(n), M = Dim(m), K = Dim(k);

TEST(Dim, SumsAndProductsHaveOneForm) {
  EXPECT_EQ(to_text(N + Dim(1) + N), "2 * N + 1");
  EXPECT_EQ(N + M, M + N);
  EXPECT_EQ((N + Dim(1)) * (M + Dim(2)), N * M + M + Dim(2) * N + Dim(2));
  EXPECT_EQ(N - N, Dim(0));
  EXPECT_EQ(to_text(Dim(5) - N), "5 - N");
  EXPECT_EQ(N * Dim(0), Dim(0));
  EXPECT_EQ(to_text(N * M * N), "M * N * N");
}

TEST(Dim, DivisionTakesOutWhatItCan) {
  EXPECT_EQ(floor_div(N * Dim(784), Dim(28)), N * Dim(28));
  EXPECT_EQ(floor_div(N * Dim(4) + Dim(3), Dim(4)), N);
  EXPECT_EQ(to_text(floor_div(N + Dim(1), Dim(2))), "(N + 1) // 2");
  EXPECT_EQ(floor_div(N * Dim(2) + M, Dim(2)), N + floor_div(M, Dim(2)));
  EXPECT_EQ(floor_div(floor_div(N, Dim(2)), Dim(3)), floor_div(N, Dim(6)));
  EXPECT_EQ(floor_div(N * K, K), N);
  EXPECT_NE(floor_div(N * K, N), K) << "N may be 0";
  EXPECT_EQ(floor_mod(N * Dim(8), Dim(4)), Dim(0));
  EXPECT_EQ(ceil_div(N * Dim(4), Dim(4)), N);
  EXPECT_EQ(floor_div(Dim(7), Dim(0)), Dim(0));
  EXPECT_EQ(floor_mod(Dim(7), Dim(0)), Dim(7));
}

TEST(Dim, BoundsFollowFromTheSymbols) {
  EXPECT_EQ(bounds(M * Dim(2) + Dim(1)), (Range{3, 129}));
  EXPECT_EQ(bounds(N - M), (Range{-64, {}}));
  EXPECT_EQ(bounds(floor_mod(N, Dim(8))), (Range{0, 7}));
  EXPECT_EQ(min(M, Dim(100)), M);
  EXPECT_EQ(max(M, Dim(0)), M);
  EXPECT_TRUE(provably_at_least(N + K, N + Dim(1)));
  EXPECT_TRUE(provably_different(M, Dim(0)));
  EXPECT_FALSE(provably_different(N, Dim(0)));
  EXPECT_TRUE(provably_equal(N + N, Dim(2) * N));
}

TEST(Dim, OverflowIsNeitherUndefinedNorSilent) {
  const Dim big = std::numeric_limits<std::int64_t>::max();
  EXPECT_FALSE((big + Dim(1)).is_constant());
  EXPECT_FALSE((big * Dim(2)).is_constant());
  EXPECT_FALSE(((N * big) * big).is_constant());
  EXPECT_EQ(evaluate(N * big + N, [](const Var&) { return std::optional<std::int64_t>(4); }), std::nullopt);
}

TEST(Dim, SubstitutionAndEvaluationAgreeWithArithmetic) {
  std::mt19937 random(7);
  const auto value_of = [](const Var& var) -> std::optional<std::int64_t> {
    return var.name == "N" ? 13 : var.name == "M" ? 6 : 3;
  };
  for (int round = 0; round < 2000; ++round) {
    Dim symbolic = N;
    std::int64_t number = 13;
    for (int step = 0; step < 6; ++step) {
      const int which = static_cast<int>(random() % 3);
      const Dim other = which == 0 ? M : which == 1 ? K : Dim(static_cast<std::int64_t>(random() % 7) - 2);
      const std::int64_t value = *evaluate(other, value_of);
      switch (random() % 7) {
        case 0:
          symbolic = symbolic + other, number += value;
          break;
        case 1:
          symbolic = symbolic - other, number -= value;
          break;
        case 2:
          symbolic = symbolic * other, number *= value;
          break;
        case 3:
          symbolic = floor_div(symbolic, other), number = value == 0 ? 0 : tessera::floor_div(number, value);
          break;
        case 4:
          symbolic = floor_mod(symbolic, other),
          number = value == 0 ? number : tessera::floor_mod(number, value);
          break;
        case 5:
          symbolic = min(symbolic, other), number = std::min(number, value);
          break;
        default:
          symbolic = max(symbolic, other), number = std::max(number, value);
          break;
      }
    }
    ASSERT_EQ(evaluate(symbolic, value_of), number) << to_text(symbolic);
    ASSERT_EQ(simplified(symbolic.is_constant() ? ExprRef(int_const(symbolic.value())) : symbolic.expr()),
              symbolic);
    const Range range = bounds(symbolic);
    ASSERT_TRUE(!range.lower || *range.lower <= number) << to_text(symbolic);
    ASSERT_TRUE(!range.upper || *range.upper >= number) << to_text(symbolic);
  }
}

TEST(Dim, LargeExpressionsHaveTheirNumber) {
  Dim symbolic = N;
  std::int64_t number = 13;
  for (int i = 0; i < 100; ++i) {
    symbolic = max(min(symbolic + M, K * Dim(i)), Dim(i % 7));
    number = std::max<std::int64_t>(std::min<std::int64_t>(number + 6, 3 * i), i % 7);
    ASSERT_EQ(evaluate(symbolic,
                       [](const Var& var) -> std::optional<std::int64_t> {
                         return var.name == "N" ? 13 : var.name == "M" ? 6 : 3;
                       }),
              number);
  }
}

TEST(Dim, NestedMinimaAreNotExponential) {
  Dim d = N;
  for (int i = 0; i < 200; ++i) d = min(d, Dim(size_symbol("S")) + Dim(i));
  EXPECT_FALSE(d.is_constant());
  EXPECT_EQ(simplified(d.expr()), d);
}

TEST(Dim, ShapesOfNumbers) {
  EXPECT_EQ(element_count({65536, 65536}), 1LL << 32);
  EXPECT_EQ(element_count({1LL << 40, 1LL << 40}), std::nullopt);
  EXPECT_EQ(element_count({N, 2}), std::nullopt);
  EXPECT_EQ(element_count({}), 1);
  EXPECT_EQ(to_text(Shape{64, N}), "[64, N]");
}

}  // namespace
