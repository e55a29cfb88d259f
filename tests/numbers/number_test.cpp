// Numbers that are written into a program: what does not fit is an error, what fits keeps all its digits.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tessera/tensor/compiled.h"
#include "tessera/tensor/create.h"
#include "tessera/tensor/ops.h"
#include "tests/support/message.h"

using namespace tessera;
using fixture::message_of;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::int64_t odd = 9'007'199'254'740'993;  // no double

template <class F>
void expect_error(F&& f, const std::string& message) {
  const std::string got = message_of(f);
  EXPECT_NE(got.find(": " + message), std::string::npos) << "got: " << got << "\nexpected: " << message;
  EXPECT_NE(got.find("number_test.cpp:"), std::string::npos) << got;
}

TEST(Trap_U10, NumbersThatDoNotFitAreErrors) {
  expect_error([] { full({1}, 300, {.dtype = i8}); }, "full: the number 300 does not fit i8");
  expect_error([] { full({1}, 2.7, {.dtype = i32}); }, "full: the number 2.7 does not fit i32");
  expect_error([] { full({1}, -1, {.dtype = u8}); }, "full: the number -1 does not fit u8");
  expect_error([] { full({1}, 2, {.dtype = bool_}); }, "full: the number 2 does not fit bool");
  expect_error([] { full({1}, std::nan(""), {.dtype = i64}); }, "full: the number nan does not fit i64");
  expect_error([] { full({1}, infinity, {.dtype = i64}); }, "full: the number inf does not fit i64");
  expect_error([] { full({1}, 1e19, {.dtype = i64}); }, "full: the number 1e+19 does not fit i64");
  Tensor whole = zeros({2}, {.dtype = i32});
  expect_error([&] { whole.fill(2.7); }, "fill: the number 2.7 does not fit i32");
  expect_error([&] { whole.fill(std::int64_t{1} << 31); }, "fill: the number 2147483648 does not fit i32");
  EXPECT_EQ(whole.to_vector<int>(), (std::vector<int>{0, 0}));
  expect_error([] { constant(300, {.dtype = i8}); }, "constant: the number 300 does not fit i8");
  const Tensor small = full({1}, 7, {.dtype = i8});
  expect_error([&] { small + 300; }, "add: the number 300 does not fit i8");
  const auto sum = compile([](const Tensor& a, const Tensor& b) { return a + b; });
  EXPECT_NE(message_of([&] { sum(small, 300); }).find("compile: the number 300 does not fit i8"),
            std::string::npos);
}

TEST(Trap_U10, RangesThatDoNotFitAreErrors) {
  expect_error([] { arange(3, {.start = 300, .dtype = i8}); }, "arange: the number 300 does not fit i8");
  expect_error([] { arange(200, {.dtype = i8}); }, "arange: the number 199 does not fit i8");
  expect_error([] { arange(2, {.start = 0.5}); }, "arange: the number 0.5 does not fit i64");
  expect_error([] { arange(3, {.step = std::int64_t{1} << 62}); },
               "arange: 3 numbers from 0 on in steps of 4611686018427387904 do not fit i64");
  EXPECT_EQ(arange(3, {.start = 255, .step = -1, .dtype = u8}).to_vector<int>(),
            (std::vector<int>{255, 254, 253}));
  EXPECT_EQ(arange(0, {.start = 127, .step = 5, .dtype = i8}).size(), 0);
  EXPECT_EQ(arange(2, {.start = odd}).to_vector<std::int64_t>(), (std::vector<std::int64_t>{odd, odd + 1}));
}

TEST(Trap_U10, IntegersKeepAllTheirDigits) {
  EXPECT_EQ(full({1}, odd, {.dtype = i64}).item<std::int64_t>(), odd);
  EXPECT_EQ(constant(odd, {.dtype = i64}).item<std::int64_t>(), odd);
  Tensor x = zeros({1}, {.dtype = i64});
  x.fill(odd);
  EXPECT_EQ(x.item<std::int64_t>(), odd);
  constexpr auto largest = std::numeric_limits<std::int64_t>::max();
  constexpr auto largest_unsigned = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(full({1}, largest, {.dtype = i64}).item<std::int64_t>(), largest);
  EXPECT_EQ(full({1}, largest_unsigned, {.dtype = u64}).item<std::uint64_t>(), largest_unsigned);
  EXPECT_EQ(full({1}, true, {.dtype = bool_}).item<bool>(), true);
}

TEST(Trap_U10, ReductionsOfWideIntegersAreExact) {
  const Tensor x = full({3}, 16'777'217, {.dtype = i64});
  EXPECT_EQ(mean(x).item<double>(), 16'777'217);
  EXPECT_EQ(mean(x).dtype(), f64);
  EXPECT_EQ(mean(x.cast(i32)).item<double>(), 16'777'217);
  EXPECT_EQ(mean(x.cast(u64)).item<double>(), 16'777'217);
  EXPECT_EQ(l2_norm(x.slice({{0, 1}})).item<double>(), 16'777'217);
  EXPECT_EQ(mean(full({2}, 3, {.dtype = i16})).dtype(), f32);
  EXPECT_EQ(mean(full({2}, 1, {.dtype = bool_})).dtype(), f32);
}

TEST(Trap_U10, OnlyWhatNobodyWroteChangesNoDtype) {
  const Tensor x = full({2}, 127, {.dtype = i8});
  EXPECT_EQ(clip(x).dtype(), i8);
  EXPECT_EQ(clip(x, 0).dtype(), i8);
  EXPECT_EQ(pad(x, 0, {.before = {1}, .after = {0}}).dtype(), i8);
  EXPECT_EQ(pad(x, {}, {.before = {1}, .after = {0}}).dtype(), i8);
  EXPECT_EQ((x + infinity).to_vector<double>(), (std::vector<double>{infinity, infinity}));
  EXPECT_EQ((x < infinity).to_vector<int>(), (std::vector<int>{1, 1}));
  EXPECT_TRUE(std::isnan(maximum(x, std::nan("")).item<double>({0})));
  EXPECT_EQ(where(x < 0, x, -infinity).item<double>({0}), -infinity);
}

}  // namespace
