#include "tessera/runtime/cpu/steady_value.h"

#include <gtest/gtest.h>

#include <cmath>

using tessera::runtime::cpu::set_if_other;

TEST(SteadyValue, TakesWhatHasOtherBits) {
  double number = 0.0;
  set_if_other(number, -0.0);
  EXPECT_TRUE(std::signbit(number)) << "though 0 equals -0";
  set_if_other(number, 2.5);
  EXPECT_EQ(number, 2.5);
  const int one = 1, other = 1;
  const int* at = &one;
  set_if_other(at, &other);
  EXPECT_EQ(at, &other);
}
