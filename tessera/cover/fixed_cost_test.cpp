#include "tessera/cover/fixed_cost.h"

#include <gtest/gtest.h>

using namespace tessera::cover;

namespace {

TEST(CostScale, KeepsWholeNumbersExactUpToAMillionNodes) {
  const double uncovered = 1e6 + 1;
  const CostScale scale(1e6 * uncovered);
  for (double cost : {0.0, 1.0, 2.0, uncovered}) EXPECT_TRUE(scale.is_exact(cost)) << cost;
  EXPECT_EQ(scale.quanta(uncovered) - scale.quanta(1e6), scale.quanta(1));
}

TEST(CostScale, ReadsBackWhatItFixed) {
  CostScale scale(1000);
  for (double cost : {0.1, 3.75, 999.999}) EXPECT_NEAR(scale.real(scale.quanta(cost)), cost, scale.quantum());
  scale.set_unit(scale.quanta(0.25));
  EXPECT_EQ(scale.real(3), 0.75);
}

TEST(CostScale, TakesAnyMagnitude) {
  for (double total : {0.0, 1e-300, 1.0, 1e300}) {
    const CostScale scale(total);
    EXPECT_GE(scale.quanta(total), 0);
    EXPECT_LT(scale.quanta(total), Cost{1} << 51);
  }
}

TEST(FineCosts, RoundsABoundUpToACost) {
  const FineCosts fine(100);
  EXPECT_EQ(fine.rounded_up(fine.of(7)), 7);
  EXPECT_EQ(fine.rounded_up(fine.of(7) + 1), 8);
  EXPECT_EQ(fine.rounded_up(fine.of(7) - 1), 7);
  EXPECT_GT(fine.of(1), 8) << "a cost can be shared by eight nodes";
}

TEST(RealSum, DoesNotLoseSmallTerms) {
  RealSum sum;
  sum.add(1e16);
  for (int i = 0; i < 1000; ++i) sum.add(1);
  sum.add(-1e16);
  EXPECT_EQ(sum.value(), 1000);
}

}  // namespace
