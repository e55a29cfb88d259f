#include "tessera/kernel/repeats.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tessera/base/text.h"
#include "tessera/kernel/kernel_case.h"

using namespace tessera;
using namespace tessera::kernel;

namespace {

/// All values of the kernel of a text, and their repeats.
std::vector<Repeat> repeats_of(const std::string& text, std::size_t least = 8) {
  const Kernel kernel = built(text);
  std::vector<ValueId> values(kernel.body.size());
  std::iota(values.begin(), values.end(), 0);
  return find_repeats(kernel, values, least);
}

std::string chain(int count, std::string_view last = "") {
  std::string text = "func f(x: f32[8], y: f32[8]) {\n  a0: f32[8] = add(x, y)\n";
  for (int i = 1; i < count; ++i) text += cat("  a", i, ": f32[8] = add(a", i - 1, ", y)\n");
  return cat(text, last.empty() ? cat("  return a", count - 1) : std::string(last), "\n}");
}

TEST(Repeats, AChainOfOneCallIsOne) {
  const auto found = repeats_of(chain(50));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].period, 1u);
  EXPECT_GE(found[0].times, 49u) << "all but the first, which reads the input";
}

TEST(Repeats, ShortOnesAreNone) {
  EXPECT_TRUE(repeats_of(chain(5)).empty());
  EXPECT_TRUE(repeats_of(chain(50), 64).empty());
}

TEST(Repeats, SeveralCallsAreAPeriod) {
  std::string text = "func f(x: f32[8], y: f32[8]) {\n  a0: f32[8] = add(x, y)\n";
  for (int i = 1; i < 20; ++i)
    text += cat("  m", i, ": f32[8] = mul(a", i - 1, ", y)\n  t", i, ": f32[8] = tanh(m", i, ")\n  a", i,
                ": f32[8] = add(t", i, ", m", i, ")\n");
  const auto found = repeats_of(text + "  return a19\n}");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].period, 3u);
  EXPECT_GE(found[0].times, 18u);
}

TEST(Repeats, AValueThatOthersReadEndsOne) {
  const auto found = repeats_of(chain(50, "  return a20, a49"));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_LT(found[0].times, 25u);
  EXPECT_GT(found[0].times + found[1].times, 45u);
}

TEST(Repeats, WhatReachesBackFurtherIsNone) {
  std::string text = "func f(x: f32[8], y: f32[8]) {\n  a0: f32[8] = add(x, y)\n  a1: f32[8] = add(a0, y)\n";
  for (int i = 2; i < 40; ++i) text += cat("  a", i, ": f32[8] = add(a", i - 1, ", a", i - 2, ")\n");
  EXPECT_TRUE(repeats_of(text + "  return a39\n}").empty());
}

TEST(Repeats, OtherOperandsAreOthers) {
  std::string text = "func f(x: f32[8], y: f32[8]) {\n  a0: f32[8] = add(x, y)\n";
  for (int i = 1; i < 40; ++i)
    text += cat("  a", i, ": f32[8] = add(a", i - 1, ", ", i % 3 == 0 ? "x" : "y", ")\n");
  const auto found = repeats_of(text + "  return a39\n}");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].period, 3u);
}

}  // namespace
