#include "tessera/runtime/cpu/compiled_kernel.h"

#include <bit>
#include <thread>

#include "tessera/base/text.h"
#include "tessera/kernel/kernel_case.h"
#include "tessera/kernel/random_region.h"
#include "tests/support/repeats.h"

using namespace tessera;
using namespace tessera::kernel;
using namespace tessera::runtime::cpu;

namespace {

/// Skips where the system has no LLVM.
class CompiledKernelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto llvm = Llvm::open();
    if (!llvm) GTEST_SKIP() << llvm.error().to_text();
  }
};

/// Runs generated code and compares with the reference.
void expect_code_agrees(const ir::Function& function, double tolerance, std::uint64_t seed,
                        const KernelOptions& options = {}) {
  CompiledKernel code(value_or_throw(build(function)), options);
  const auto inputs = random_inputs(function, seed);
  const auto expected = value_or_throw(op::interpret(function, inputs));
  const auto results = empty_like(expected);
  CompiledJob job;
  ASSERT_TRUE(code.prepare(arrays_of(inputs), arrays_of(results), job));
  const bool has_columns = code.kernel().reduces() && job.job.lanes == Lanes::outer;
  if (has_columns && !find_passes(code.kernel()).kept.empty()) return;  // the interpreter's
  ASSERT_NE(job.code, nullptr) << code.why_interpreted();
  Scratch scratch;
  code.run(job, {}, {0, job.job.items}, scratch);
  for (std::size_t i = 0; i < results.size(); ++i)
    EXPECT_LE(difference(results[i], expected[i]), tolerance) << "result " << i << "\n"
                                                              << to_text(code.kernel());
}

TEST_F(CompiledKernelTest, RandomRegionsAgreeWithTheReference) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    expect_code_agrees(*RandomRegion(seed, Dtype::f32).function(2 + seed % 29), 1e-4, seed,
                       {.quality = CodeQuality::fast});
    expect_code_agrees(*RandomRegion(seed, Dtype::i32).function(2 + seed % 29), 0, seed,
                       {.quality = CodeQuality::fast});
  }
}

TEST_F(CompiledKernelTest, RowFormsAgreeWithTheReferenceAtAnyLength) {
  for (int n : {1, 2, 15, 16, 17, 63, 64, 65, 130, 4095, 4097, 10000})
    for (const char* op : {"softmax", "log_softmax", "layer_norm", "rms_norm"}) {
      SCOPED_TRACE(cat(op, " of ", n));
      const std::string t = cat("f32[3, ", n, "]");
      const auto function = parsed(cat("func f(x: ", t, ") {\n  y: ", t, " = ", op, "(x)\n  return y\n}"));
      expect_code_agrees(*function, 3e-6, static_cast<std::uint64_t>(n), {.quality = CodeQuality::fast});
    }
}

TEST_F(CompiledKernelTest, ColumnsAgreeWithTheReferenceAtAnyWidth) {
  for (int columns : {2, 15, 16, 17, 63, 64, 65, 130, 5000})
    for (int rows : fixture::is_sanitized ? std::vector{3} : std::vector{2, 3, 100})
      for (const char* op : {"sum", "mean", "max", "prod", "l2_norm"})
        for (const char* dtype : {"f32", "f64", "bf16"}) {
          SCOPED_TRACE(cat(op, " of ", rows, " rows of ", columns, " ", dtype));
          const auto function =
              parsed(cat("func f(x: ", dtype, "[", rows, ", ", columns, "]) {\n  y: ", dtype, "[", columns,
                         "] = ", op, "(x) {axes = [0]}\n  return y\n}"));
          expect_code_agrees(*function, 1e-5, static_cast<std::uint64_t>(columns * rows),
                             {.quality = CodeQuality::fast});
        }
}

/// Sums over a middle axis, of what is computed on the way, with what follows them.
TEST_F(CompiledKernelTest, ColumnsAreFusedWithWhatIsAroundThem) {
  const auto function = parsed(
      "func f(x: f32[3, 50, 70], y: f32[50, 1], w: f32[70]) {\n  a: f32[3, 50, 70] = mul(x, y)\n"
      "  b: f32[3, 50, 70] = relu(a)\n  s: f32[3, 70] = sum(b) {axes = [1]}\n"
      "  r: f32[3, 70] = mul(s, 0.5:f32)\n  d: f32[3, 70] = sub(w, r)\n  return d\n}");
  expect_code_agrees(*function, 1e-5, 1);
  const auto centred = parsed(
      "func f(x: f32[50, 70]) {\n  m: f32[1, 70] = mean(x) {axes = [0], keepdims = true}\n"
      "  y: f32[50, 70] = sub(x, m)\n  return y\n}");
  expect_code_agrees(*centred, 1e-5, 2);
}

TEST_F(CompiledKernelTest, IntegersAndTruthsAreReducedByColumns) {
  for (const char* op : {"sum", "max", "min"})
    expect_code_agrees(
        *parsed(cat("func f(x: i32[9, 100]) {\n  y: i32[100] = ", op, "(x) {axes = [0]}\n  return y\n}")), 0,
        3);
  expect_code_agrees(
      *parsed("func f(x: bool[9, 100]) {\n  y: bool[100] = any(x) {axes = [0]}\n  return y\n}"), 0, 3);
}

TEST_F(CompiledKernelTest, PreciseCodeHasTheBitsOfSingleOps) {
  const auto function = parsed(
      "func f(x: f32[1000], y: f32[1000]) {\n  a: f32[1000] = mul(x, y)\n  b: f32[1000] = add(a, x)\n"
      "  c: f32[1000] = div(b, y)\n  d: f32[1000] = sub(c, a)\n  return d\n}");
  expect_code_agrees(*function, 0, 1, {.is_precise = true});
}

TEST_F(CompiledKernelTest, SumsOfManyF32AreAccurate) {
  expect_code_agrees(*parsed("func f(x: f32[1000003]) {\n  y: f32[] = sum(x)\n  return y\n}"), 1e-6, 1);
}

/// The largest error of a function of one operand over a part of all floats, in units of the last place.
double worst_ulps(const char* op, double (*exact)(double), const KernelOptions& options = {}) {
  std::vector<float> x;
  for (std::uint64_t bits = 0; bits <= 0xffffffffU; bits += 65521)
    x.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  const auto n = static_cast<std::int64_t>(x.size());
  CompiledKernel code(built(cat("func f[N](x: f32[N]) {\n  y: f32[N] = ", op, "(x)\n  return y\n}")),
                      options);
  const auto input = op::HostTensor::of<float>(Dtype::f32, {n}, x);
  const auto output = value_or_throw(op::HostTensor::allocate(Dtype::f32, {n}));
  Scratch scratch;
  EXPECT_TRUE(run(code, arrays_of({input}), arrays_of({output}), {}, scratch));
  EXPECT_EQ(code.why_interpreted(), "");
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double want = exact(static_cast<double>(x[i]));
    const float got = output.values<float>()[i];
    if (std::isnan(want) != std::isnan(got) || std::isinf(static_cast<float>(want)) != std::isinf(got)) {
      ADD_FAILURE() << op << "(" << x[i] << ") = " << got << ", expected " << want;
      continue;
    }
    if (std::isnan(want) || std::isinf(got)) continue;
    const double magnitude = std::max(std::abs(want), 1.1754943508222875e-38);
    worst = std::max(worst, std::abs(got - want) / std::ldexp(1.0, std::ilogb(magnitude) - 23));
  }
  return worst;
}

TEST_F(CompiledKernelTest, FunctionsKeepTheirLimitsOverAllFloats) {
  EXPECT_LE(worst_ulps("exp", [](double x) { return std::exp(x); }), 2);
  EXPECT_LE(worst_ulps("log", [](double x) { return std::log(x); }), 2);
  EXPECT_LE(worst_ulps("sin", [](double x) { return std::sin(x); }), 2);
  EXPECT_LE(worst_ulps("cos", [](double x) { return std::cos(x); }), 2);
  EXPECT_LE(worst_ulps("tanh", [](double x) { return std::tanh(x); }), 6);
  EXPECT_LE(worst_ulps("erf", [](double x) { return std::erf(x); }), 6);
  EXPECT_LE(worst_ulps("erfc", [](double x) { return std::erfc(x); }), 6);
  EXPECT_LE(worst_ulps("gelu", [](double x) { return 0.5 * x * std::erfc(-x * 0.70710678118654752440); }), 6);
  EXPECT_LE(worst_ulps("expm1", [](double x) { return std::expm1(x); }), 4);
  EXPECT_LE(worst_ulps("log1p", [](double x) { return std::log1p(x); }), 4);
  EXPECT_LE(worst_ulps("sqrt", [](double x) { return std::sqrt(x); }), 0.5);
  EXPECT_LE(worst_ulps("tan", [](double x) { return std::tan(x); }), 1);
  EXPECT_LE(worst_ulps("atan", [](double x) { return std::atan(x); }), 1);
}

/// The same over a part of all doubles, and of those about 1 more.
double worst_wide_ulps(const char* op, long double (*exact)(long double)) {
  std::vector<double> x{0.0, -0.0, 1.0, -1.0, 5e-324, INFINITY, -INFINITY, NAN, 709.782, -745.13, 2.0, 0.5};
  for (std::uint64_t i = 0; i < 200'000; ++i) x.push_back(std::bit_cast<double>(i * 0x9e3779b97f4a7c15ULL));
  for (int i = -100'000; i < 100'000; ++i) x.push_back(i * 3.1415926e-4);
  const auto n = static_cast<std::int64_t>(x.size());
  CompiledKernel code(built(cat("func f[N](x: f64[N]) {\n  y: f64[N] = ", op, "(x)\n  return y\n}")));
  const auto input = op::HostTensor::of<double>(Dtype::f64, {n}, x);
  const auto output = value_or_throw(op::HostTensor::allocate(Dtype::f64, {n}));
  Scratch scratch;
  EXPECT_TRUE(run(code, arrays_of({input}), arrays_of({output}), {}, scratch));
  EXPECT_EQ(code.why_interpreted(), "");
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const long double want = exact(static_cast<long double>(x[i]));
    const auto rounded = static_cast<double>(want);
    const double got = output.values<double>()[i];
    if (std::isnan(want) != std::isnan(got) || std::isinf(rounded) != std::isinf(got) ||
        (!std::isnan(want) && std::signbit(rounded) != std::signbit(got))) {
      ADD_FAILURE() << op << "(" << x[i] << ") = " << got << ", expected " << rounded;
      continue;
    }
    if (std::isnan(want) || std::isinf(got)) continue;
    const double magnitude = std::max(std::abs(rounded), 2.2250738585072014e-308);
    const auto off = static_cast<double>(std::abs(static_cast<long double>(got) - want));
    worst = std::max(worst, off / std::ldexp(1.0, std::ilogb(magnitude) - 52));
  }
  return worst;
}

TEST_F(CompiledKernelTest, FunctionsOfF64KeepTheirLimits) {
  EXPECT_LE(worst_wide_ulps("exp", [](long double x) { return std::exp(x); }), 2);
  EXPECT_LE(worst_wide_ulps("exp2", [](long double x) { return std::exp2(x); }), 2);
  EXPECT_LE(worst_wide_ulps("expm1", [](long double x) { return std::expm1(x); }), 3);
  EXPECT_LE(worst_wide_ulps("log", [](long double x) { return std::log(x); }), 2);
  EXPECT_LE(worst_wide_ulps("log2", [](long double x) { return std::log2(x); }), 3);
  EXPECT_LE(worst_wide_ulps("log1p", [](long double x) { return std::log1p(x); }), 2);
  EXPECT_LE(worst_wide_ulps("tanh", [](long double x) { return std::tanh(x); }), 3);
  EXPECT_LE(worst_wide_ulps("sin", [](long double x) { return std::sin(x); }), 2);
  EXPECT_LE(worst_wide_ulps("cos", [](long double x) { return std::cos(x); }), 2);
  EXPECT_LE(worst_wide_ulps("tan", [](long double x) { return std::tan(x); }), 4);
  EXPECT_LE(worst_wide_ulps("atan", [](long double x) { return std::atan(x); }), 3);
}

TEST_F(CompiledKernelTest, PowersAreWithinAUnitAlsoAtTheEdges) {
  const std::vector<float> some{0.0f,  -0.0f,   1.0f,   -1.0f, 2.0f,   -2.0f, 3.0f,    -3.0f,     0.5f,
                                -0.5f, 1e-40f,  1e30f,  2.5f,  -7.0f,  1e-3f, 1.001f,  -INFINITY, INFINITY,
                                NAN,   100.25f, 151.0f, 1e10f, -1e10f, 7e6f,  -150.5f, 0.9999f};
  std::vector<float> x, y;
  for (const float a : some)
    for (const float b : some) {
      x.push_back(a);
      y.push_back(b);
    }
  for (int i = 0; i < 20'000; ++i) {
    x.push_back(std::exp(std::sin(static_cast<float>(i)) * 20));
    y.push_back(std::cos(static_cast<float>(i) * 1.7f) * 5);
  }
  const auto n = static_cast<std::int64_t>(x.size());
  CompiledKernel code(built("func f[N](x: f32[N], y: f32[N]) {\n  z: f32[N] = pow(x, y)\n  return z\n}"));
  const auto base = op::HostTensor::of<float>(Dtype::f32, {n}, x),
             exponent = op::HostTensor::of<float>(Dtype::f32, {n}, y);
  const auto output = value_or_throw(op::HostTensor::allocate(Dtype::f32, {n}));
  Scratch scratch;
  EXPECT_TRUE(run(code, arrays_of({base, exponent}), arrays_of({output}), {}, scratch));
  EXPECT_EQ(code.why_interpreted(), "");
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto want = static_cast<float>(std::pow(static_cast<double>(x[i]), static_cast<double>(y[i])));
    const float got = output.values<float>()[i];
    const bool is_near = std::bit_cast<std::uint32_t>(want) - std::bit_cast<std::uint32_t>(got) + 1 <= 2;
    EXPECT_TRUE(is_near || (std::isnan(want) && std::isnan(got)))
        << "pow(" << x[i] << ", " << y[i] << ") = " << got << ", expected " << want;
  }
}

TEST_F(CompiledKernelTest, PreciseFunctionsAreWithinTwoUnitsOfTheLastPlace) {
  const KernelOptions precise{.is_precise = true};
  EXPECT_LE(worst_ulps(
                "exp", [](double x) { return std::exp(x); }, precise),
            2);
  EXPECT_LE(worst_ulps(
                "exp2", [](double x) { return std::exp2(x); }, precise),
            2);
  EXPECT_LE(worst_ulps(
                "expm1", [](double x) { return std::expm1(x); }, precise),
            2);
  EXPECT_LE(worst_ulps(
                "log", [](double x) { return std::log(x); }, precise),
            2);
  EXPECT_LE(worst_ulps(
                "log2", [](double x) { return std::log2(x); }, precise),
            2);
  EXPECT_LE(worst_ulps(
                "log1p", [](double x) { return std::log1p(x); }, precise),
            2);
  EXPECT_LE(worst_ulps(
                "sin", [](double x) { return std::sin(x); }, precise),
            2);
  EXPECT_LE(worst_ulps(
                "cos", [](double x) { return std::cos(x); }, precise),
            2);
  EXPECT_LE(worst_ulps(
                "tanh", [](double x) { return std::tanh(x); }, precise),
            2);
  EXPECT_LE(worst_ulps(
                "erf", [](double x) { return std::erf(x); }, precise),
            2);
  EXPECT_LE(worst_ulps(
                "gelu", [](double x) { return 0.5 * x * std::erfc(-x * 0.70710678118654752440); }, precise),
            2);
}

/// A row's divisor that has no good reciprocal is divided by.
TEST_F(CompiledKernelTest, DivisionByARowsValueIsRightAtTheEdgesOfTheRange) {
  const auto function = parsed(
      "func f(x: f32[4, 70]) {\n  m: f32[4, 1] = max(x) {axes = [1], keepdims = true}\n"
      "  y: f32[4, 70] = div(x, m)\n  return y\n}");
  CompiledKernel code(value_or_throw(build(*function)));
  std::vector<float> x(280);
  const float largest[] = {1e-40f, 3e38f, 0.0f, 2.0f};
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = i % 70 == 5 ? largest[i / 70] : -largest[i / 70] / 3;
  const auto input = op::HostTensor::of<float>(Dtype::f32, {4, 70}, x);
  const auto expected = value_or_throw(op::interpret(*function, std::vector{input}));
  const auto result = value_or_throw(op::HostTensor::allocate(Dtype::f32, {4, 70}));
  Scratch scratch;
  ASSERT_TRUE(run(code, arrays_of({input}), arrays_of({result}), {}, scratch));
  EXPECT_LE(difference(result, expected[0]), 3e-7);
}

TEST_F(CompiledKernelTest, AnOutputMayBeAnInput) {
  const auto function = parsed(
      "func f(x: f32[40, 500]) {\n  s: f32[40, 500] = softmax(x)\n  y: f32[40, 500] = sin(s)\n  return y\n}");
  CompiledKernel code(value_or_throw(build(*function)));
  const auto inputs = random_inputs(*function, 2);
  const auto expected = value_or_throw(op::interpret(*function, inputs));
  Scratch scratch;
  ASSERT_TRUE(run(code, arrays_of(inputs), arrays_of(inputs), {}, scratch));
  EXPECT_LE(difference(inputs[0], expected[0]), 2e-6);
}

TEST_F(CompiledKernelTest, ThreadsShareAKernelAndASplitOfItems) {
  const auto function = parsed("func f(x: f32[100000]) {\n  y: f32[100000] = tanh(x)\n  return y\n}");
  CompiledKernel code(value_or_throw(build(*function)), {.quality = CodeQuality::fast});
  const auto inputs = random_inputs(*function, 2);
  const auto whole = value_or_throw(op::HostTensor::allocate(Dtype::f32, {100000})),
             parts = value_or_throw(op::HostTensor::allocate(Dtype::f32, {100000}));
  Scratch scratch;
  ASSERT_TRUE(run(code, arrays_of(inputs), arrays_of({whole}), {}, scratch));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      CompiledJob job;
      Scratch own;
      ASSERT_TRUE(code.prepare(arrays_of(inputs), arrays_of({parts}), job));
      code.run(job, {}, {job.job.items * t / 4, job.job.items * (t + 1) / 4}, own);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(std::memcmp(whole.array().data, parts.array().data, whole.byte_size()), 0);
}

std::vector<std::byte> bytes_of(const op::HostTensor& tensor) {
  const std::byte* const begin = tensor.array().data;
  return {begin, begin + tensor.byte_size()};
}

TEST_F(CompiledKernelTest, BetterCodeGivesTheSameBits) {
  std::vector<ir::FunctionRef> functions;
  for (const char* body :
       {"y: f32[37, 130] = softmax(x)", "y: f32[37, 130] = layer_norm(x)", "y: f32[37, 130] = gelu(x)",
        "y: f32[130] = l2_norm(x) {axes = [0]}",
        "a: f32[37, 130] = mul(x, 0.3) b: f32[37, 130] = sub(x, a) c: f32[37, 130] = mul(b, x) "
        "y: f32[37, 130] = sub(c, a)"})
    functions.push_back(parsed(cat("func f(x: f32[37, 130]) { ", body, " return y }")));
  for (std::uint64_t seed = 1; seed <= 20; ++seed)
    functions.push_back(RandomRegion(seed, Dtype::f32).function(2 + seed % 29));
  for (const auto& function : functions) {
    CompiledKernel code(value_or_throw(build(*function)), {.quality = CodeQuality::fast});
    const auto inputs = random_inputs(*function, 5);
    const auto results = empty_like(value_or_throw(op::interpret(*function, inputs)));
    CompiledJob job;
    ASSERT_TRUE(code.prepare(arrays_of(inputs), arrays_of(results), job));
    if (job.code == nullptr) continue;  // the interpreter's
    Scratch scratch;
    code.run(job, {}, {0, job.job.items}, scratch);
    std::vector<std::vector<std::byte>> before;
    for (const auto& result : results) before.push_back(bytes_of(result));
    EXPECT_EQ(code.best(job.code), job.code);
    EXPECT_TRUE(code.improve());
    EXPECT_FALSE(code.improve()) << "there is nothing better";
    const RowFunction better = code.best(job.code);
    EXPECT_NE(better, job.code);
    ASSERT_TRUE(code.prepare(arrays_of(inputs), arrays_of(results), job));
    EXPECT_EQ(job.code, better);
    code.run(job, {}, {0, job.job.items}, scratch);
    for (std::size_t i = 0; i < results.size(); ++i)
      EXPECT_EQ(bytes_of(results[i]), before[i]) << to_text(code.kernel());
  }
}

/// Large results are written past the caches, if they begin where a line does; bit for bit the same.
TEST_F(CompiledKernelTest, LargeResultsAreStreamed) {
  for (const char* dtype : fixture::is_sanitized ? std::vector{"f32"} : std::vector{"f32", "bf16", "f64"}) {
    const std::int64_t size = std::string_view(dtype) == "bf16" ? 17'000'003 : 8'400'005;
    const std::string type = cat(dtype, "[", size, "]");
    const auto function = parsed(cat("func f(x: ", type, ") {\n  y: ", type, " = tanh(x)\n  z: ", type,
                                     " = mul(y, x)\n  return z\n}"));
    CompiledKernel code(value_or_throw(build(*function)));
    const auto x = random_inputs(*function, 3)[0];
    std::vector<std::vector<std::byte>> seen;
    for (const std::int64_t offset : {0, 1}) {
      const auto memory = value_or_throw(op::HostTensor::allocate(x.dtype(), {size + 64}));
      op::Array result = memory.array();
      const auto bytes = static_cast<std::int64_t>(ir::size_of(x.dtype()));
      while (reinterpret_cast<std::uintptr_t>(result.data) % 64 != 0) result.data += bytes;
      result.data += offset * bytes;
      result.layout = op::contiguous({size});
      CompiledJob job;
      ASSERT_TRUE(code.prepare(arrays_of(std::vector{x}), {&result, 1}, job));
      EXPECT_EQ(job.streams, offset == 0);
      Scratch scratch;
      code.run(job, {}, {0, job.job.items / 2}, scratch);
      code.run(job, {}, {job.job.items / 2, job.job.items}, scratch);
      seen.emplace_back(result.data, result.data + size * bytes);
    }
    EXPECT_EQ(seen[0], seen[1]) << dtype;
  }
}

/// Rows, too, if each begins where a line does; not what is read while it lies in a cache, or is small.
TEST_F(CompiledKernelTest, LargeRowsAreStreamed) {
  for (const std::int64_t columns : {1040, 1041}) {
    const std::string type = cat("f32[4100,", columns, "]");
    const auto function =
        parsed(cat("func f(x: ", type, ") {\n  y: ", type, " = softmax(x)\n", "  return y\n}"));
    CompiledKernel code(value_or_throw(build(*function)));
    const auto x = random_inputs(*function, 3);
    std::vector<op::HostTensor> results;
    for (const Readers readers : {Readers::later, Readers::at_once}) {
      results.push_back(empty_like(x)[0]);
      const op::Array result = results.back().array();
      CompiledJob job;
      ASSERT_TRUE(code.prepare(arrays_of(x), {&result, 1}, job, readers));
      EXPECT_EQ(job.streams, columns == 1040 && readers == Readers::later);
      Scratch scratch;
      code.run(job, {}, {0, job.job.items}, scratch);
    }
    EXPECT_EQ(bytes_of(results[0]), bytes_of(results[1])) << columns;
  }
  const auto small = parsed("func f(x: f32[1000]) {\n  y: f32[1000] = tanh(x)\n  return y\n}");
  CompiledKernel code(value_or_throw(build(*small)));
  const auto x = random_inputs(*small, 3);
  CompiledJob job;
  ASSERT_TRUE(code.prepare(arrays_of(x), arrays_of(empty_like(x)), job));
  EXPECT_FALSE(job.streams);
}

TEST(CompiledKernel, WithoutACompilerTheInterpreterServes) {
  const auto function = parsed("func f(x: f32[100]) {\n  y: f32[100] = tanh(x)\n  return y\n}");
  CompiledKernel code(value_or_throw(build(*function)), {.compiles = false});
  const auto inputs = random_inputs(*function, 2);
  const auto expected = value_or_throw(op::interpret(*function, inputs));
  const auto results = empty_like(expected);
  Scratch scratch;
  ASSERT_TRUE(run(code, arrays_of(inputs), arrays_of(results), {}, scratch));
  EXPECT_LE(difference(results[0], expected[0]), 1e-6);
}

TEST_F(CompiledKernelTest, WhatHasNoCodeIsInterpretedAndSaysWhy) {
  const auto function = parsed("func f(x: f32[100]) {\n  y: f32[100] = asinh(x)\n  return y\n}");
  CompiledKernel code(value_or_throw(build(*function)));
  const auto inputs = random_inputs(*function, 2);
  const auto expected = value_or_throw(op::interpret(*function, inputs));
  const auto results = empty_like(expected);
  Scratch scratch;
  ASSERT_TRUE(run(code, arrays_of(inputs), arrays_of(results), {}, scratch));
  EXPECT_EQ(difference(results[0], expected[0]), 0);
  EXPECT_EQ(code.why_interpreted(), "no vector code for 'asinh' of f32");
}

// ---- object code

std::vector<std::byte> some_object() {
  const Kernel kernel = built("func f(x: f32[100]) {\n  y: f32[100] = tanh(x)\n  return y\n}");
  const CodeShape shape{Lanes::outer, 0, {LanePattern::contiguous, LanePattern::contiguous}, 8};
  const std::string text = value_or_throw(generate(kernel, find_passes(kernel), shape));
  return value_or_throw(value_or_throw(Llvm::open())->compile(text, CodeQuality::fast));
}

TEST_F(CompiledKernelTest, BrokenObjectCodeIsAnError) {
  const auto object = some_object();
  ASSERT_TRUE(ObjectCode::load(object, row_function_name));
  EXPECT_FALSE(ObjectCode::load({}, row_function_name));
  EXPECT_FALSE(ObjectCode::load(object, "another"));
  for (std::size_t size = 0; size < object.size(); size += 7)
    (void)ObjectCode::load(std::span(object).first(size), row_function_name);
  std::mt19937_64 random(1);
  for (int round = 0; round < 3000; ++round) {
    auto broken = object;
    for (int k = 0; k < 4; ++k) broken[random() % broken.size()] = static_cast<std::byte>(random());
    (void)ObjectCode::load(broken, row_function_name);  // loads or says why not, and reads nothing outside
  }
}

}  // namespace
