#include "tessera/ir/scalar_fold.h"

#include <gtest/gtest.h>

#include <limits>

#include "tessera/ir/dim.h"
#include "tessera/ir/integers.h"
#include "tessera/ir/parse.h"
#include "tessera/ir/print.h"
#include "tessera/ir/structural_equal.h"
#include "tessera/ir/structural_hash.h"
#include "tests/support/repeats.h"

using namespace tessera;
using namespace tessera::ir;

namespace {

/// What is left of an expression, as a text.
std::string folded(const std::string& text) {
  const NodeRef node = value_or_throw(parse("free N free M: i64 in -4.. free b: bool expr " + text));
  return print_line(*fold_scalars(ExprRef(static_cast<const Expr*>(node.get()))), 200);
}

TEST(ScalarFold, IntegersOfAllWidths) {
  EXPECT_EQ(folded("(0 - 7) / 2"), "-3");
  EXPECT_EQ(folded("(0 - 7) // 2"), "-4");
  EXPECT_EQ(folded("(0 - 7) % 4"), "1");
  EXPECT_EQ(folded("i64.fmod(0 - 7, 4)"), "-3");
  EXPECT_EQ(folded("3 << 4 | 1"), "49");
  EXPECT_EQ(folded("(0 - 9) >> 1"), "-5");
  EXPECT_EQ(folded("1 << 64"), "0");
  EXPECT_EQ(folded("i64.pow(3, 4) + i64.abs(0 - 2) * i64.sign(0 - 5)"), "79");
  EXPECT_EQ(folded("i64.pow(2, 0 - 1)"), "0");
  EXPECT_EQ(folded("i64.fma(3, 4, 5)"), "i64.fma(3, 4, 5)") << "no operation of sizes";
  EXPECT_EQ(folded("i64.popcount(255)"), "8");
  EXPECT_EQ(folded("100:i8 + 100:i8"), "-56:i8");
  EXPECT_EQ(folded("200:u8 * 2:u8"), "144:u8");
  EXPECT_EQ(folded("0:u64 - 1:u64"), "18446744073709551615:u64");
  EXPECT_EQ(folded("18446744073709551615:u64 // 2:u64"), "9223372036854775807:u64");
  EXPECT_EQ(folded("18446744073709551615:u64 * 18446744073709551615:u64"), "1:u64");
  EXPECT_EQ(folded("18446744073709551615:u64 > 1:u64"), "true");
}

TEST(ScalarFold, Conversions) {
  EXPECT_EQ(folded("i64.cast(300:i32) + i64.cast(true)"), "301");
  EXPECT_EQ(folded("i8.cast(300)"), "44:i8");
  EXPECT_EQ(folded("i64.cast(-2.75)"), "-2");
  EXPECT_EQ(folded("i64.cast(f32.nan)"), "0");
  EXPECT_EQ(folded("i64.cast(1e30)"), "9223372036854775807");
  EXPECT_EQ(folded("u8.cast(-1.5)"), "0:u8");
  EXPECT_EQ(folded("i64.bitcast(18446744073709551615:u64)"), "-1");
  EXPECT_EQ(folded("bool.cast(2)"), "true");
  EXPECT_EQ(folded("bool.bit_not(3 < 4) | 1 == 1"), "true");
}

TEST(ScalarFold, OneConstantOperandIsSometimesEnough) {
  EXPECT_EQ(folded("(N / 1 + 0) * 1 - 0"), "N");
  EXPECT_EQ(folded("0 + 1 * N // 1"), "N");
  EXPECT_EQ(folded("N % 1 + 0 * N"), "0");
  EXPECT_EQ(folded("i64.select(2 < 1, N, M)"), "M");
  EXPECT_EQ(folded("i64.select(b, N, M)"), "i64.select(b, N, M)");
  EXPECT_EQ(folded("i64.neg(N)"), "0 - N");
}

TEST(ScalarFold, WhatHasNoValueStays) {
  EXPECT_EQ(folded("8 / 0 + (2 - 2)"), "8 / 0");
  EXPECT_EQ(folded("9223372036854775807 + 1"), "9223372036854775807 + 1");
  EXPECT_EQ(folded("i64.neg(-9223372036854775807 - 1)"), "0 - -9223372036854775808");
  EXPECT_EQ(folded("(-9223372036854775807 - 1) / -1"), "-9223372036854775808 / -1");
  EXPECT_EQ(folded("i64.pow(10, 19)"), "i64.pow(10, 19)");
  EXPECT_EQ(folded("3 + 1:i32"), "3 + 1:i32");
}

TEST(ScalarFold, DivisionByZeroHasAValueWhenItIsEvaluated) {
  EXPECT_EQ(evaluate_integers(ScalarOpcode::div, 7, 0), 0);
  EXPECT_EQ(evaluate_integers(ScalarOpcode::floor_mod, 7, 0), 7);
  EXPECT_EQ(evaluate_integers(ScalarOpcode::floor_div, std::numeric_limits<std::int64_t>::min(), -1),
            std::nullopt);
}

/// The only dimension of a type, as a text.
std::string size(const std::string& text) {
  const NodeRef node = value_or_throw(
      parse("free N free M: i64 in -4.. free K: i64 in 1.. free b: bool type f32[" + text + "]"));
  return to_text(as<TensorType>(*node)->shape[0]);
}

TEST(SizeText, DivisionsAndShiftsAreSimplified) {
  EXPECT_EQ(size("8 / 2"), "4");
  EXPECT_EQ(size("N / 1"), "N");
  EXPECT_EQ(size("6 * N / 3"), "2 * N");
  EXPECT_EQ(size("N / 2"), "N // 2") << "nothing is negative";
  EXPECT_EQ(size("M / 2"), "M / 2") << "M may be -3, and then they round differently";
  EXPECT_EQ(size("6 * M / 3"), "2 * M");
  EXPECT_EQ(size("M * K / K"), "M");
  EXPECT_EQ(size("N * N / N"), "N * N / N") << "N may be 0";
  EXPECT_EQ(size("6 * M / (0 - 3)"), "-2 * M");
  EXPECT_EQ(size("i64.fmod(N, 4)"), "N % 4");
  EXPECT_EQ(size("i64.fmod(M, 4)"), "i64.fmod(M, 4)");
  EXPECT_EQ(size("N << 3"), "8 * N");
  EXPECT_EQ(size("8 * N >> 2"), "2 * N");
  EXPECT_EQ(size("i64.select(N - N == 0, 4 * N / 4, 5)"), "N");
  EXPECT_EQ(size("i64.select(b, N + N, 2)"), "i64.select(b, 2 * N, 2)");
  EXPECT_EQ(size("i64.neg(N) + i64.max(3, 2) + 2 * N"), "N + 3");
}

TEST(SizeText, EqualSizesAreEqualHoweverTheyAreWritten) {
  const auto same = [](const std::string& a, const std::string& b) {
    const std::string head = "free N free b: bool type f32[";
    const NodeRef x = value_or_throw(parse(head + a + "]")), y = value_or_throw(parse(head + b + "]"));
    const bool equal = structural_equal(*x, *y, CompareMode::mapping);
    EXPECT_EQ(equal, structural_hash(*x, CompareMode::mapping) == structural_hash(*y, CompareMode::mapping))
        << a;
    return equal;
  };
  EXPECT_TRUE(same("8 / 2", "4"));
  EXPECT_TRUE(same("1 << 10", "i64.pow(2, 10)"));
  EXPECT_TRUE(same("i64.select(b, N + N, 8 / 4)", "i64.select(b, 2 * N, 2)"));
  EXPECT_TRUE(same("N / 2", "N >> 1"));
  EXPECT_FALSE(same("8 / 3", "3"));
  EXPECT_FALSE(same("i64.select(b, N, 2)", "i64.select(b, 2, N)"));
}

TEST(SizeText, SymbolsUnderAnyOperationAreSubstituted) {
  const auto m = size_symbol("M", {-4, {}});
  const ExprRef expr = scalar_op(ScalarOpcode::select, {scalar_op(ScalarOpcode::lt, {m, int_const(0)}),
                                                        scalar_op(ScalarOpcode::div, {m, int_const(2)}),
                                                        scalar_op(ScalarOpcode::abs, {m})});
  const Dim dim = simplified(expr);
  const auto at = [&](std::int64_t value) {
    return evaluate(dim, [&](const Var&) { return std::optional(value); });
  };
  EXPECT_EQ(at(-3), -1);
  EXPECT_EQ(at(5), 5);
}

TEST(SizeText, AMillionLevels) {
  constexpr std::size_t depth = fixture::repeats(1'000'000U);
  const auto nested = [](const std::string& before, const std::string& inner, const std::string& after) {
    std::string text;
    for (std::size_t i = 0; i < depth; ++i) text += before;
    text += inner;
    for (std::size_t i = 0; i < depth; ++i) text += after;
    return size(text);
  };
  EXPECT_EQ(nested("(", "8", " / 1)"), "8");
  EXPECT_EQ(nested("(", "N", " // 1)"), "N");
  EXPECT_EQ(nested("i64.min(", "7", ", 9)"), "7");
}

}  // namespace
