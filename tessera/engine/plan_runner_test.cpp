// Programs that are compiled as a whole, with sizes that depend on data: against the interpreter, for many
// data and sizes with one program.
#include "tessera/engine/plan_runner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "tessera/compile/package.h"
#include "tessera/compile/plan_program.h"
#include "tessera/engine/devices.h"
#include "tessera/ir/parse.h"
#include "tessera/op/interpreter.h"

using namespace tessera;
using engine::PlanRunner;
using op::HostTensor;

namespace {

ir::FunctionRef parsed(const std::string& text) {
  const auto node = value_or_throw(ir::parse(text));
  return ir::FunctionRef(ir::as<ir::Function>(node));
}

HostTensor floats(op::Extents shape, const std::vector<float>& elements) {
  HostTensor out = value_or_throw(HostTensor::allocate(op::Dtype::f32, std::move(shape)));
  std::copy(elements.begin(), elements.end(), out.values<float>().begin());
  return out;
}

HostTensor integer(std::int64_t value) {
  HostTensor out = value_or_throw(HostTensor::allocate(op::Dtype::i64, {}));
  std::memcpy(out.array().data, &value, sizeof value);
  return out;
}

PlanRunner runner_of(const ir::FunctionRef& function, const std::string& device) {
  const auto on = value_or_throw(engine::find_device(device));
  auto planned = value_or_throw(compiler::plan_program(function, on->target()));
  return value_or_throw(
      PlanRunner::create(compiler::package(*function, {std::move(planned.program)}, device), *on));
}

void expect_same(const std::vector<HostTensor>& expected, const std::vector<HostTensor>& got) {
  ASSERT_EQ(expected.size(), got.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(expected[i].shape(), got[i].shape()) << "output " << i;
    EXPECT_EQ(std::memcmp(expected[i].array().data, got[i].array().data, got[i].byte_size()), 0) << i;
  }
}

/// Elements of which those at multiples of `each` are not 0.
HostTensor with_holes(std::int64_t size, std::int64_t each) {
  std::vector<float> elements;
  for (std::int64_t i = 0; i < size; ++i)
    elements.push_back(each != 0 && i % each == 0 ? static_cast<float>(i + 1) : 0.0F);
  return floats({size}, elements);
}

constexpr const char* positive_elements =
    "func f[N](x: f32[N]) {\n"
    "  places: i64[N, 1], k: i64 = nonzero(x)\n"
    "  kept: i64[k, 1] = slice(places) {starts = shape[0], stops = shape[k]}\n"
    "  flat: i64[k] = reshape(kept) {shape = shape[k]}\n"
    "  y: f32[k] = gather(x, flat) {axis = 0}\n"
    "  z: f32[k] = mul(y, 2.0)\n"
    "  total: f32[] = sum(z) {axes = [0]}\n"
    "  return z, total, k\n"
    "}\n";

}  // namespace

class OnEveryDevice : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Devices, OnEveryDevice, testing::Values("reference", "cpu"));

TEST_P(OnEveryDevice, ACutProgramServesAllCounts) {
  const auto function = parsed(positive_elements);
  PlanRunner runner = runner_of(function, GetParam());
  EXPECT_EQ(runner.package().programs[0].parts.size(), 2U);
  for (const std::int64_t size : {0, 1, 7, 64, 1000})
    for (const std::int64_t each : {0, 1, 2, 5, 1}) {
      SCOPED_TRACE(testing::Message() << size << " elements, each " << each);
      const HostTensor inputs[] = {with_holes(size, each)};
      const auto got = runner.run(inputs);
      ASSERT_TRUE(got) << got.error().to_text();
      expect_same(value_or_throw(op::interpret(*function, inputs)), *got);
    }
}

TEST_P(OnEveryDevice, SizesOfSizesAreLearnedOneAfterTheOther) {
  const auto function = parsed(
      "func f[N](x: f32[N]) {\n"
      "  a: i64[N, 1], k: i64 = nonzero(x)\n"
      "  y: f32[k] = slice(x) {starts = shape[0], stops = shape[k]}\n"
      "  b: i64[k, 1], m: i64 = nonzero(y)\n"
      "  z: f32[m] = slice(y) {starts = shape[0], stops = shape[m]}\n"
      "  w: f32[m] = exp(z)\n"
      "  return w, y\n"
      "}\n");
  PlanRunner runner = runner_of(function, GetParam());
  EXPECT_EQ(runner.package().programs[0].parts.size(), 3U);
  for (const std::int64_t each : {0, 1, 2, 3}) {
    const HostTensor inputs[] = {with_holes(20, each)};
    const auto got = runner.run(inputs);
    ASSERT_TRUE(got) << got.error().to_text();
    EXPECT_EQ((*got)[0].shape(), value_or_throw(op::interpret(*function, inputs))[0].shape());
  }
}

TEST_P(OnEveryDevice, ASizeThatDoesNotFitIsAnErrorAtItsLine) {
  const auto function = parsed(
      "func f(n: i64, x: f32[8]) {\n"
      "  y: f32[n] = slice(x) {starts = shape[0], stops = shape[n]}\n"
      "  m: i64 = sub(n, 2)\n"
      "  z: f32[m] = slice(y) {starts = shape[0], stops = shape[m]}\n"
      "  return z\n"
      "}\n");
  PlanRunner runner = runner_of(function, GetParam());
  const auto run = [&](std::int64_t n) {
    const HostTensor inputs[] = {integer(n), with_holes(8, 1)};
    return runner.run(inputs);
  };
  const auto fine = run(5);
  ASSERT_TRUE(fine) << fine.error().to_text();
  EXPECT_EQ((*fine)[0].shape(), (op::Extents{3}));
  const auto negative = run(1);
  ASSERT_FALSE(negative);
  EXPECT_EQ(negative.error().message(), "the size 'm' is -1, but must be at least 0");
  EXPECT_EQ(negative.error().span().line, 3U);
  EXPECT_FALSE(run(-3));
  EXPECT_FALSE(run(9));  // more than there is
  EXPECT_FALSE(run(std::int64_t{1} << 62));
  EXPECT_TRUE(run(8)) << "an error leaves the runner as it was";
}

TEST(PlanRunner, ACutProgramIsSavedAndLoaded) {
  const auto function = parsed(positive_elements);
  PlanRunner fresh = runner_of(function, "cpu");
  const std::string bytes = value_or_throw(plan::to_bytes(fresh.package()));
  auto package = value_or_throw(
      plan::from_bytes(Bytes::copy(std::as_bytes(std::span(bytes.data(), bytes.size()))), "saved"));
  const auto device = value_or_throw(engine::find_device("cpu"));
  PlanRunner loaded = value_or_throw(PlanRunner::create(std::move(package), *device));
  const HostTensor inputs[] = {with_holes(33, 4)};
  expect_same(value_or_throw(fresh.run(inputs)), value_or_throw(loaded.run(inputs)));
}

TEST(PlanRunner, SaysWhereAProgramIsCutAndWhatIsBounded) {
  const auto lines =
      plan::data_dependent_sizes(runner_of(parsed(positive_elements), "cpu").package().programs[0]);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0], "nonzero at <text>:2:3: by upper bound, i64[N, 1] with a count beside it");
  EXPECT_EQ(lines[1], "cut at <text>:2:3: the host learns the size 'k' before part 2");
}

TEST(PlanRunner, MeasuresItsStepsIfAsked) {
  PlanRunner runner = runner_of(parsed(positive_elements), "cpu");
  const HostTensor inputs[] = {with_holes(33, 4)};
  static_cast<void>(value_or_throw(runner.run(inputs)));
  EXPECT_EQ(runner.profile().evaluations, 0U);
  runner.set_profiling(ProfilingLevel::per_kernel);
  for (int i = 0; i < 2; ++i) static_cast<void>(value_or_throw(runner.run(inputs)));
  const engine::Profile profile = runner.profile();
  EXPECT_EQ(profile.evaluations, 2U);
  ASSERT_FALSE(profile.kernels.empty());
  EXPECT_EQ(profile.kernels[0].ops[0].name, "nonzero");
  EXPECT_EQ(profile.kernels[0].ops[0].line, 2U);
  for (const engine::KernelTime& kernel : profile.kernels) EXPECT_EQ(kernel.runs, 2U) << kernel.name;
}

TEST(PlanRunner, SaysWhereSizesWereGivenThatMustBeEqual) {
  const auto function =
      parsed("func f[N, M](x: f32[4, N], y: f32[M, 4]) {\n  z: f32[4, 4] = matmul(x, y)\n  return z\n}\n");
  PlanRunner runner = runner_of(function, "cpu");
  const HostTensor other[] = {floats({4, 5}, std::vector<float>(20, 1)),
                              floats({6, 4}, std::vector<float>(24, 1))};
  const auto refused = runner.run(other);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().span().line, 2U);
  EXPECT_NE(refused.error().message().find("5 and 6 do not agree"), std::string::npos);
  EXPECT_EQ(refused.error().notes(),
            (std::vector<std::string>{"N is axis 1 of input 'x'", "M is axis 0 of input 'y'"}));
}

// A plan is for all sizes; what an op asks of them beside being equal is looked at when they are known.
TEST_P(OnEveryDevice, SizesThatAnOpDoesNotTakeAreRefusedBeforeItRuns) {
  const auto function = parsed(
      "func f[N](x: f32[N, 4]) {\n"
      "  y: f32[3, 4], at: i64[3, 4] = topk(x) {k = 3, axis = 0}\n"
      "  z: f32[3, 4] = exp(y)\n"
      "  return z, at\n"
      "}\n");
  PlanRunner runner = runner_of(function, GetParam());
  const auto run = [&](std::int64_t rows) {
    const HostTensor inputs[] = {
        floats({rows, 4}, std::vector<float>(static_cast<std::size_t>(4 * rows), 1))};
    return runner.run(inputs);
  };
  EXPECT_TRUE(run(3));
  const auto refused = run(2);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::shape);
  EXPECT_EQ(refused.error().span().line, 2U) << refused.error().to_text();
  EXPECT_TRUE(run(5));
}

TEST_P(OnEveryDevice, ASizeOutsideOfItsRangeIsRefused) {
  const auto function = parsed("func f[N: i64 in 2..4](x: f32[N]) {\n  y: f32[N] = exp(x)\n  return y\n}\n");
  PlanRunner runner = runner_of(function, GetParam());
  const HostTensor fits[] = {floats({4}, std::vector<float>(4, 1))};
  const HostTensor larger[] = {floats({5}, std::vector<float>(5, 1))};
  EXPECT_TRUE(runner.run(fits));
  const auto refused = runner.run(larger);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message(), "the size 'N' is 5, but must be at least 2 and at most 4");
}

TEST(PlanRunner, KeepsToItsLimitOfWork) {
  const auto device = value_or_throw(engine::find_device("reference"));
  const auto function = parsed("func f[N](x: f32[N, N]) {\n  y: f32[N, N] = matmul(x, x)\n  return y\n}\n");
  auto planned = value_or_throw(compiler::plan_program(function, device->target()));
  auto runner = value_or_throw(PlanRunner::create(
      compiler::package(*function, {std::move(planned.program)}, "reference"), *device, {.work = 1000}));
  const HostTensor small[] = {floats({4, 4}, std::vector<float>(16, 1))};
  const HostTensor large[] = {floats({40, 40}, std::vector<float>(1600, 1))};
  EXPECT_TRUE(runner.run(small));
  const auto refused = runner.run(large);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::limit);
}

// ---- limits of time and work

namespace {

/// Loops that never end: around steps, around nothing, in each other.
constexpr const char* endless[] = {
    "func f(x: f32[8]) {\n"
    "  y: f32[8] = while (x) with () limit 1000000000000 (a: f32[8]) {\n"
    "    s: f32[] = sum(a) {axes = [0]}\n    more: bool[] = lt(s, 1e30)\n    return more\n"
    "  } do (a: f32[8]) {\n    b: f32[8] = mul(a, 0.5)\n    return b\n  }\n"
    "  return y\n}\n",
    "func f(x: f32[8]) {\n"
    "  y: f32[8] = for 1000000000000 (x) with () (i: i64[], a: f32[8]) {\n    return a\n  }\n"
    "  return y\n}\n",
    "func f(x: f32[8]) {\n"
    "  y: f32[8] = for 1000000000000 (x) with () (i: i64[], a: f32[8]) {\n"
    "    b: f32[8] = for 1000000000000 (a) with () (j: i64[], c: f32[8]) {\n"
    "      d: f32[8] = exp(c)\n      return d\n    }\n"
    "    return b\n  }\n"
    "  return y\n}\n"};

Error limited_error(const char* text, const std::string& device, engine::RunLimits limits) {
  const auto function = parsed(text);
  const auto on = value_or_throw(engine::find_device(device));
  auto planned = value_or_throw(compiler::plan_program(function, on->target()));
  auto runner = value_or_throw(
      PlanRunner::create(compiler::package(*function, {std::move(planned.program)}, device), *on, limits));
  const HostTensor x = floats({8}, std::vector<float>(8, 1));
  const auto out = runner.run(std::span(&x, 1));
  return out ? Error(ErrorCode::internal, "no error") : out.error();
}

}  // namespace

TEST(PlanRunner, Trap_U14_AnEndlessLoopEndsAndIsNamed) {
  for (const char* device : {"reference", "cpu"})
    for (const char* text : endless) {
      const Error error = limited_error(text, device, {.seconds = 0.2});
      EXPECT_EQ(error.code(), ErrorCode::limit) << error.to_text();
      EXPECT_NE(error.message().find(" 'y', iteration "), std::string::npos) << error.to_text();
      EXPECT_NE(error.message().find("runs for more than 0.2 seconds"), std::string::npos) << error.to_text();
    }
}

TEST(PlanRunner, Trap_U14_WorkInALoopCounts) {
  for (const char* device : {"reference", "cpu"}) {
    const Error error = limited_error(endless[0], device, {.work = 10'000});
    EXPECT_EQ(error.code(), ErrorCode::limit) << error.to_text();
    EXPECT_NE(error.message().find("while 'y', iteration "), std::string::npos) << error.to_text();
    EXPECT_NE(error.message().find("the work is more than"), std::string::npos) << error.to_text();
  }
}

TEST(PlanRunner, Trap_U14_OneHugeStepEnds) {
  // By the reference this would take minutes, by the cpu seconds; neither runs to its end.
  const char* text =
      "func f(x: f32[1, 8192], w: f32[8192, 1]) {\n"
      "  big: f32[8192, 8192] = matmul(w, x)\n  product: f32[8192, 8192] = matmul(big, big)\n"
      "  again: f32[8192, 8192] = matmul(product, big)\n  out: f32[] = sum(again) {axes = [0, 1]}\n  return "
      "out\n}\n";
  const auto function = parsed(text);
  const std::vector<HostTensor> inputs{floats({1, 8192}, std::vector<float>(8192, 1)),
                                       floats({8192, 1}, std::vector<float>(8192, 1))};
  for (const char* device : {"reference", "cpu"}) {
    const auto on = value_or_throw(engine::find_device(device));
    auto planned = value_or_throw(compiler::plan_program(function, on->target()));
    auto runner = value_or_throw(PlanRunner::create(
        compiler::package(*function, {std::move(planned.program)}, device), *on, {.seconds = 0.1}));
    const auto out = runner.run(inputs);
    ASSERT_FALSE(out) << device;
    EXPECT_NE(out.error().message().find("runs for more than 0.1 seconds"), std::string::npos)
        << out.error().to_text();
  }
}
