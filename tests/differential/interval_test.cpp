#include "tests/differential/interval.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

using namespace tessera;
using namespace tessera::differential;
using ir::Dtype;
using ir::ScalarOpcode;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

Interval of(ScalarOpcode opcode, Interval a, Dtype dtype = Dtype::f32) {
  return apply(opcode, std::array{a}, precision_of(dtype));
}
Interval of(ScalarOpcode opcode, Interval a, Interval b, Dtype dtype = Dtype::f32) {
  return apply(opcode, std::array{a, b}, precision_of(dtype));
}

TEST(Interval, WhatIsNotRoundedStaysExact) {
  EXPECT_EQ(of(ScalarOpcode::add, exactly(0.25), exactly(1.5)), exactly(1.75));
  EXPECT_EQ(of(ScalarOpcode::mul, exactly(0.75), exactly(-1.5)), exactly(-1.125));
  EXPECT_EQ(of(ScalarOpcode::div, exactly(3), exactly(4)), exactly(0.75));
  EXPECT_EQ(of(ScalarOpcode::sqrt, exactly(2.25)), exactly(1.5));
  EXPECT_EQ(of(ScalarOpcode::floor, exactly(-0.25)), exactly(-1));
  EXPECT_EQ(of(ScalarOpcode::lt, exactly(1), exactly(1)), exactly(0));
}

TEST(Interval, WhatIsRoundedLiesInside) {
  for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::f64}) {
    const Interval third = of(ScalarOpcode::div, exactly(1), exactly(3), dtype);
    EXPECT_FALSE(third.is_exact());
    EXPECT_TRUE(third.contains(1.0 / 3));
    EXPECT_LE(third.high - third.low, 8 * precision_of(dtype).unit);
  }
  const Interval sum = of(ScalarOpcode::add, exactly(1), exactly(0x1p-30));
  EXPECT_TRUE(sum.contains(1) && sum.contains(1 + 0x1p-30));
  EXPECT_TRUE(of(ScalarOpcode::exp, {0.5, 0.75}).contains(std::exp(0.625)));
}

TEST(Interval, AJumpLeavesBothSidesOpen) {
  EXPECT_EQ(of(ScalarOpcode::floor, {0.9, 1.1}), (Interval{0, 1}));
  EXPECT_EQ(of(ScalarOpcode::floor, {1.1, 1.2}), exactly(1));
  EXPECT_EQ(of(ScalarOpcode::gt, {-0.1, 0.1}, exactly(0)), (Interval{0, 1}));
  EXPECT_EQ(of(ScalarOpcode::sign, {-0.1, 0.1}), (Interval{-1, 1}));
  const Interval either = apply(ScalarOpcode::select, std::array{Interval{0, 1}, exactly(2), exactly(5)},
                                precision_of(Dtype::f32));
  EXPECT_EQ(either, (Interval{2, 5}));
}

TEST(Interval, NumbersThatMayOverflowMayBeInfinite) {
  const Interval large = of(ScalarOpcode::exp, exactly(200));
  EXPECT_TRUE(large.contains(infinity) && large.contains(precision_of(Dtype::f32).largest));
  const Interval small = of(ScalarOpcode::div, exactly(1), large);
  EXPECT_TRUE(small.contains(0) && small.high < 1e-37 && !small.may_be_nan);
  EXPECT_TRUE(of(ScalarOpcode::mul, large, {-1e-9, 1e-9}).may_be_nan);
}

TEST(Interval, NanGoesOn) {
  const Interval nan = exactly(std::nan(""));
  EXPECT_TRUE(nan.is_exact());
  EXPECT_EQ(of(ScalarOpcode::add, nan, exactly(1)), nan);
  EXPECT_EQ(of(ScalarOpcode::lt, nan, exactly(1)), exactly(0));
  EXPECT_EQ(of(ScalarOpcode::ne, nan, nan), exactly(1));
  EXPECT_EQ(of(ScalarOpcode::log, exactly(-1)), nan);
  EXPECT_TRUE(of(ScalarOpcode::sqrt, {-1e-9, 1e-9}).may_be_nan);
}

TEST(Interval, AQuotientByZeroHasNoSign) {
  EXPECT_EQ(of(ScalarOpcode::div, exactly(1), exactly(0)), (Interval{-infinity, infinity}));
  EXPECT_EQ(of(ScalarOpcode::div, exactly(0), exactly(0)), exactly(std::nan("")));
}

}  // namespace
