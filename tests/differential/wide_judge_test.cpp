// The bounds of the f64 judge: what they hold, and what they find.
#include "tests/differential/wide_judge.h"

#include <gtest/gtest.h>

#include "tessera/ir/parse.h"
#include "tests/support/compare.h"

using namespace tessera;
using namespace tessera::differential;
using op::Dtype;

namespace {

op::HostTensor f32(std::vector<float> values) {
  const auto size = static_cast<std::int64_t>(values.size());
  return op::HostTensor::of<float>(Dtype::f32, {size}, values);
}

Program program_of(const std::string& text, std::vector<op::HostTensor> inputs) {
  const ir::NodeRef node = value_or_throw(ir::parse(text));
  return {ir::FunctionRef(ir::as<ir::Function>(node)), std::move(inputs), {}, {}, {}};
}

Results run(const Program& program) { return value_or_throw(run_reference(*program.function, program, {})); }

/// The results with the first element moved by so many units in the last place.
Results moved(const Results& results, double units) {
  auto values = fixture::doubles(results[0]);
  values[0] += units * values[0] * precision_of(results[0].dtype()).unit;
  Results out = results;
  out[0] = fixture::converted(op::HostTensor::of<double>(Dtype::f64, results[0].shape(), values),
                              results[0].dtype());
  return out;
}

TEST(WideJudge, TakesTheReferenceAndAFewRoundings) {
  const Program program = program_of(
      "func f(x: f32[4], w: f32[4]) {\n"
      "  a: f32[4] = exp(x)\n  b: f32[4] = mul(a, w)\n  c: f32[] = sum(b)\n  return b, c\n}\n",
      {f32({0.25, -1.5, 2, 0.75}), f32({1.25, 0.5, -0.25, 2})});
  const WideJudge judge(program, {});
  EXPECT_FALSE(judge.is_vacuous());
  EXPECT_EQ(judge.outside(run(program)), std::nullopt);
  EXPECT_EQ(judge.outside(moved(run(program), 2)), std::nullopt);
  EXPECT_NE(judge.outside(moved(run(program), 64)), std::nullopt);
}

TEST(WideJudge, OneWrongBitOfAnExactResultIsFound) {
  const Program program = program_of(
      "func f(x: f32[4], w: f32[4]) {\n"
      "  a: f32[4] = mul(x, w)\n  b: f32[4] = cumsum(a) {axis = 0}\n  c: f32[4] = floor(b)\n  d: f32[4] = "
      "add(b, c)\n"
      "  return d\n}\n",
      {f32({1.25, -1.5, 2, 0.75}), f32({1.25, 0.5, -0.25, 2})});
  const WideJudge judge(program, {});
  EXPECT_EQ(judge.outside(run(program)), std::nullopt);
  EXPECT_NE(judge.outside(moved(run(program), 1)), std::nullopt);
}

TEST(WideJudge, ALostDigitIsFoundAfterCancellation) {
  const Program program = program_of(
      "func f(x: f32[4]) {\n"
      "  a: f32[4] = exp(x)\n  b: f32[4] = sub(a, 1.0)\n  c: f32[4] = div(b, x)\n  return c\n}\n",
      {f32({0.25, 0.5, 0.125, 1})});
  const WideJudge judge(program, {});
  EXPECT_EQ(judge.outside(run(program)), std::nullopt);
  EXPECT_NE(judge.outside(moved(run(program), 256)), std::nullopt);
}

TEST(WideJudge, IntegersSaturate) {
  const Program program = program_of(
      "func f(x: f32[2]) {\n"
      "  a: f32[2] = sinh(x)\n  b: u8[2] = cast(a) {dtype = u8}\n  c: f32[2] = cast(b) {dtype = f32}\n"
      "  return c\n}\n",
      {f32({-2.5, 1.75})});
  const WideJudge judge(program, {});
  EXPECT_EQ(judge.outside(run(program)), std::nullopt);
  EXPECT_NE(judge.outside({f32({-6, 2})}), std::nullopt);
}

TEST(WideJudge, IntegersWrapAround) {
  const std::int64_t beyond = (std::int64_t{1} << 60) - 5;
  const Program program =
      program_of("func f(x: i64[1]) {\n  y: i16[1] = cast(x) {dtype = i16}\n  return y\n}\n",
                 {op::HostTensor::of<std::int64_t>(Dtype::i64, {1}, std::vector<std::int64_t>{beyond})});
  const WideJudge judge(program, {});
  EXPECT_EQ(judge.outside(run(program)), std::nullopt);
  EXPECT_NE(
      judge.outside({op::HostTensor::of<std::int16_t>(Dtype::i16, {1}, std::vector<std::int16_t>{32767})}),
      std::nullopt);
}

TEST(WideJudge, SaysNothingWhereARoundingDecides) {
  const Program program = program_of(
      "func f(x: f32[2]) {\n"
      "  a: f32[2] = sin(x)\n  b: f32[2] = sub(a, a)\n  c: bool[2] = gt(b, 0.0)\n  return c\n}\n",
      {f32({0.25, 0.5})});
  EXPECT_TRUE(WideJudge(program, {}).is_vacuous());
}

}  // namespace
