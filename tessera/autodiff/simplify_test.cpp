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

}  // namespace
