#include "tessera/kernel/interpreter.h"

#include "tessera/base/text.h"
#include "tessera/kernel/kernel_case.h"
#include "tessera/kernel/random_region.h"
#include "tessera/op/ir_builder.h"

using namespace tessera;
using namespace tessera::kernel;

namespace {

void check_random_regions(Dtype dtype, double tolerance) {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    RandomRegion region(seed, dtype);
    const auto function = region.function(2 + seed % 29);
    const auto kernel = build(*function);
    ASSERT_TRUE(kernel) << kernel.error().to_text();
    expect_same(*function, *kernel, tolerance, seed);
  }
}

TEST(Interpreter, RandomRegionsAgreeWithTheReferenceInF64) { check_random_regions(Dtype::f64, 1e-9); }
TEST(Interpreter, RandomRegionsAgreeWithTheReferenceInI32) { check_random_regions(Dtype::i32, 0); }
TEST(Interpreter, RandomRegionsAgreeWithTheReferenceInU8) { check_random_regions(Dtype::u8, 0); }
TEST(Interpreter, RandomRegionsAgreeWithTheReferenceInF32) { check_random_regions(Dtype::f32, 1e-4); }

/// Sums, differences and products in f32 and f16 are rounded as single ops round them.
TEST(Interpreter, ExactArithmeticHasTheBitsOfSingleOps) {
  for (const char* dtype : {"f32", "f16", "bf16"}) {
    const auto function =
        parsed(cat("func f(x: ", dtype, "[1000], y: ", dtype, "[1000]) {\n  a: ", dtype,
                   "[1000] = mul(x, y)\n  b: ", dtype, "[1000] = add(a, x)\n  c: ", dtype,
                   "[1000] = div(b, y)\n  d: ", dtype, "[1000] = sub(c, a)\n  return d\n}"));
    expect_same(*function, value_or_throw(build(*function)), 0);
  }
}

TEST(Interpreter, RunsChainsOfAThousandOps) {
  std::string text = "func f(v0: f32[3000]) {\n";
  for (int i = 1; i <= 1000; ++i)
    text +=
        cat("  v", i, ": f32[3000] = ", i % 2 == 0 ? "add" : "sub", "(v", i - 1, ", ", i % 3, ".5:f32)\n");
  const auto function = parsed(text + "  return v1000\n}");
  const Kernel kernel = value_or_throw(build(*function));
  EXPECT_LE(make_program(kernel, find_passes(kernel), Lanes::outer).block_bytes, 8 * 8 * block_elements);
  expect_same(*function, kernel, 0);
}

TEST(Interpreter, BuildsChainsOfAHundredThousandOps) {
  std::string text = "func f(v0: f32[8]) {\n";
  for (int i = 1; i <= 100000; ++i) text += cat("  v", i, ": f32[8] = neg(v", i - 1, ")\n");
  const auto function = parsed(text + "  return v100000\n}");
  expect_same(*function, value_or_throw(build(*function)), 0);
}

TEST(Interpreter, ReducesAlongEveryAxis) {
  for (const char* axes : {"[0]", "[1]", "[2]", "[0, 1]", "[0, 2]", "[1, 2]", "[0, 1, 2]"})
    for (const char* op : {"sum", "mean", "max", "prod", "l2_norm"}) {
      SCOPED_TRACE(cat(op, " ", axes));
      op::IrBuilder builder;
      const op::Value x = builder.parameter("x", {Dtype::f32, {5, 33, 17}});
      std::vector<std::int64_t> list;
      for (const char* c = axes; *c != 0; ++c)
        if (*c >= '0' && *c <= '9') list.push_back(*c - '0');
      const op::Value y = builder.call(op, {x}, {{"axes", list}});
      const auto function = value_or_throw(builder.function("f", std::vector<op::Value>{y}));
      expect_same(*function, value_or_throw(build(*function)), 4e-6);
    }
}

TEST(Interpreter, SumsOfManyF32AreAccurate) {
  const auto function = parsed("func f(x: f32[1000003]) {\n  y: f32[] = sum(x)\n  return y\n}");
  expect_same(*function, value_or_throw(build(*function)), 1e-6);
}

TEST(Interpreter, RowFormsAgreeAlongAnyAxis) {
  for (const char* op : {"softmax", "log_softmax"})
    for (int axis : {0, 1, 2}) {
      const auto function =
          parsed(cat("func f(x: f32[7, 70, 21]) {\n  y: f32[7, 70, 21] = ", op, "(x) {axis = ", axis,
                     "}\n  z: f32[7, 70, 21] = mul(y, x)\n  return z, y\n}"));
      SCOPED_TRACE(cat(op, " along ", axis));
      expect_same(*function, value_or_throw(build(*function)), 2e-6);
    }
}

TEST(Interpreter, RowResultsAndElementsAreOutputsOfOneKernel) {
  const auto function = parsed(
      "func f(x: f32[50, 300], w: f32[300]) {\n"
      "  m: f32[50, 1] = mean(x) {axes = [1], keepdims = true}\n"
      "  c: f32[50, 300] = sub(x, m)\n"
      "  q: f32[50, 300] = square(c)\n"
      "  v: f32[50] = mean(q) {axes = [1]}\n"
      "  s: f32[50] = sqrt(v)\n"
      "  y: f32[50, 300] = mul(c, w)\n"
      "  return y, s, v\n}");
  expect_same(*function, value_or_throw(build(*function)), 2e-6);
}

TEST(Interpreter, ParametersAreReadAtEveryRun) {
  const auto function = parsed("func f(x: f32[100]) {\n  y: f32[100] = mul(x, $0:f32)\n  return y\n}");
  const Kernel kernel = value_or_throw(build(*function));
  for (double value : {0.5, 0.7, -3.0}) expect_same(*function, kernel, 0, 1, std::span(&value, 1));
}

TEST(Interpreter, AnySplitOfTheItemsGivesTheSameBits) {
  const auto function = parsed(
      "func f(x: f32[40, 5000]) {\n  y: f32[40, 5000] = softmax(x)\n  z: f32[40] = sum(y) {axes = [1]}\n"
      "  return y, z\n}");
  const Interpreter interpreter(value_or_throw(build(*function)));
  const auto inputs = random_inputs(*function, 3);
  std::vector<op::HostTensor> whole{value_or_throw(op::HostTensor::allocate(Dtype::f32, {40, 5000})),
                                    value_or_throw(op::HostTensor::allocate(Dtype::f32, {40}))};
  const auto parts = empty_like(whole);
  Scratch scratch;
  ASSERT_TRUE(run(interpreter, arrays_of(inputs), arrays_of(whole), {}, scratch));
  Job job;
  ASSERT_TRUE(interpreter.prepare(arrays_of(inputs), arrays_of(parts), job));
  for (std::int64_t begin = job.items; begin > 0; begin -= 3) {
    Scratch other;
    interpreter.run(job, {}, {std::max<std::int64_t>(begin - 3, 0), begin}, other);
  }
  for (std::size_t i = 0; i < whole.size(); ++i)
    EXPECT_EQ(std::memcmp(whole[i].array().data, parts[i].array().data, whole[i].byte_size()), 0);
}

TEST(Interpreter, AnOutputMayBeAnInput) {
  const auto function = parsed(
      "func f(x: f32[5000], y: f32[5000]) {\n  a: f32[5000] = add(x, y)\n  b: f32[5000] = mul(x, a)\n"
      "  return a, b\n}");
  const Interpreter interpreter(value_or_throw(build(*function)));
  auto inputs = random_inputs(*function, 5);
  const auto expected = value_or_throw(op::interpret(*function, inputs));
  const op::HostTensor b = value_or_throw(op::HostTensor::allocate(Dtype::f32, {5000}));
  Scratch scratch;
  ASSERT_TRUE(run(interpreter, arrays_of(inputs), arrays_of({inputs[0], b}), {}, scratch));
  EXPECT_EQ(difference(inputs[0], expected[0]), 0);
  EXPECT_EQ(difference(b, expected[1]), 0);
}

TEST(Interpreter, RefusesArraysThatDoNotFit) {
  const Interpreter interpreter(
      built("func f(x: f32[4, 6]) {\n  s: f32[4, 2] = slice(x) {starts = [3], stops = [5], axes = [1]}\n"
            "  y: f32[4, 2] = relu(s)\n  return y\n}"));
  const auto tensor = [](Dtype dtype, op::Extents shape) {
    return value_or_throw(op::HostTensor::allocate(dtype, std::move(shape)));
  };
  Scratch scratch;
  const auto message = [&](const op::HostTensor& x, const op::HostTensor& y) {
    const auto done = run(interpreter, arrays_of({x}), arrays_of({y}), {}, scratch);
    return done ? std::string("ok") : done.error().message();
  };
  EXPECT_EQ(message(tensor(Dtype::f32, {4, 6}), tensor(Dtype::f32, {4, 2})), "ok");
  EXPECT_EQ(message(tensor(Dtype::f32, {9, 7}), tensor(Dtype::f32, {9, 2})), "ok");
  EXPECT_EQ(message(tensor(Dtype::f64, {4, 6}), tensor(Dtype::f32, {4, 2})), "input 0 is f64, expected f32");
  EXPECT_EQ(message(tensor(Dtype::f32, {24}), tensor(Dtype::f32, {4, 2})), "input 0 has rank 1, expected 2");
  EXPECT_EQ(message(tensor(Dtype::f32, {4, 4}), tensor(Dtype::f32, {4, 2})),
            "input 0 of shape [4, 4]: the size of axis 1 does not fit the other arrays");
  EXPECT_EQ(message(tensor(Dtype::f32, {4, 6}), tensor(Dtype::f32, {5, 2})),
            "output 0 of shape [5, 2]: the size of axis 0 does not fit the other arrays");
  const auto no_parameters = run(interpreter, {}, {}, {}, scratch);
  ASSERT_FALSE(no_parameters);
}

TEST(Interpreter, ReducingNothing) {
  const auto result = [](const char* op) {
    const Interpreter interpreter(
        built(cat("func f[N](x: f32[3, N]) {\n  y: f32[3] = ", op, "(x) {axes = [1]}\n  return y\n}")));
    const op::HostTensor x = value_or_throw(op::HostTensor::allocate(Dtype::f32, {3, 0})),
                         y = value_or_throw(op::HostTensor::allocate(Dtype::f32, {3}));
    Scratch scratch;
    const auto done = run(interpreter, arrays_of({x}), arrays_of({y}), {}, scratch);
    return done ? cat(y.values<float>()[2]) : done.error().message();
  };
  EXPECT_EQ(result("sum"), "0.0");
  EXPECT_EQ(result("prod"), "1.0");
  EXPECT_NE(result("mean").find("nan"), std::string::npos);
  EXPECT_EQ(result("logsumexp"), "-inf");
  EXPECT_EQ(result("max"), "max: reducing no elements has no value");
}

}  // namespace
