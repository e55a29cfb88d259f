#include "tessera/autodiff/simplify.h"

#include <gtest/gtest.h>

#include "tessera/ir/structural_equal.h"
#include "tests/support/finite_differences.h"

using namespace tessera;
using fixture::parsed_function;

namespace {

void expect_simplified(std::string_view text, std::string_view wanted) {
  const auto out = autodiff::simplified(parsed_function(text));
  const auto mismatch = ir::first_mismatch(*out, *parsed_function(wanted), ir::CompareMode::strict);
  EXPECT_FALSE(mismatch) << mismatch->to_text() << "\n" << ir::print(*out);
  EXPECT_EQ(autodiff::simplified(out), out);
}

TEST(Simplify, DropsWhatNothingUsesAndWhatIsComputedTwice) {
  expect_simplified(R"(
func f(x: f64[2]) {
  a: f64[2] = sin(x)
  b: f64[2] = cos(x)
  c: f64[2] = sin(x)
  d: f64[2] = mul(a, c)
  e: f64[2] = exp(b)
  return d
})",
                    R"(
func f(x: f64[2]) {
  a: f64[2] = sin(x)
  d: f64[2] = mul(a, a)
  return d
})");
}

TEST(Simplify, KeepsWhatATypeMentions) {
  const auto f = parsed_function(R"(
func f(n: i64[]) {
  rows: i64 = identity(n)
  a: f64[rows] = full(0.0:f64) {shape = shape[rows]}
  return a
})");
  EXPECT_EQ(autodiff::simplified(f), f);
}

TEST(Simplify, KeepsABroadcastOnlyWhereItIsNeeded) {
  expect_simplified(R"(
func f(x: f64[2, 3], s: f64[2, 1]) {
  b: f64[2, 3] = broadcast_to(s) {shape = shape[2, 3]}
  y: f64[2, 3] = mul(x, b)
  z: f64[2, 3] = mul(b, b)
  return y, z
})",
                    R"(
func f(x: f64[2, 3], s: f64[2, 1]) {
  b: f64[2, 3] = broadcast_to(s) {shape = shape[2, 3]}
  y: f64[2, 3] = mul(x, s)
  z: f64[2, 3] = mul(s, b)
  return y, z
})");
}

TEST(Simplify, JoinsTransposes) {
  expect_simplified(R"(
func f(x: f64[2, 3, 4]) {
  a: f64[3, 4, 2] = transpose(x) {permutation = [1, 2, 0]}
  b: f64[4, 3, 2] = transpose(a) {permutation = [1, 0, -1]}
  c: f64[2, 3, 4] = transpose(b) {permutation = [2, 1, 0]}
  d: f64[2, 3, 4] = sin(c)
  return b, c, d
})",
                    R"(
func f(x: f64[2, 3, 4]) {
  b: f64[4, 3, 2] = transpose(x) {permutation = [2, 1, 0]}
  d: f64[2, 3, 4] = sin(x)
  return b, x, d
})");
}

TEST(Simplify, TakesOutWhatALoopCarriesInVain) {
  expect_simplified(R"(
func f(n: i64[], x: f64[2], w: f64[2], v: f64[2]) {
  a: f64[2], b: f64[2], c: f64[2] = for n (x, x, x) with (v, w) (i: i64[], a: f64[2], b: f64[2], c: f64[2], v: f64[2], w: f64[2]) {
    p: f64[2] = mul(a, w)
    q: f64[2] = mul(b, v)
    r: f64[2] = add(c, p)
    return p, q, r
  }
  return c
})",
                    R"(
func f(n: i64[], x: f64[2], w: f64[2], v: f64[2]) {
  a: f64[2], c: f64[2] = for n (x, x) with (w) (i: i64[], a: f64[2], c: f64[2], w: f64[2]) {
    p: f64[2] = mul(a, w)
    r: f64[2] = add(c, p)
    return p, r
  }
  return c
})");
}

TEST(Simplify, KeepsWhatTheConditionOfALoopReads) {
  const auto f = parsed_function(R"(
func f(k: i64[], x: f64[2], l: i64[]) {
  m: i64[], y: f64[2] = while (k, x) with (l) limit 9 (k: i64[], a: f64[2], l: i64[]) {
    more: bool[] = lt(k, l)
    return more
  } do (k: i64[], a: f64[2], l: i64[]) {
    j: i64[] = add(k, 1)
    b: f64[2] = sin(a)
    return j, b
  }
  return y
})");
  EXPECT_EQ(autodiff::simplified(f), f);
}

}  // namespace
