#include "tessera/runtime/cuda/kernel_source.h"

#include <chrono>
#include <deque>
#include <set>

#include "tessera/base/text.h"
#include "tessera/kernel/kernel_case.h"
#include "tessera/kernel/random_region.h"
#include "tessera/runtime/cuda/emulator/emulator.h"
#include "tessera/runtime/cuda/emulator/nvrtc_check.h"

using namespace tessera;
using namespace tessera::kernel;
using namespace tessera::runtime::cuda;

namespace {

/// One kernel on one set of arrays, in guarded memory, with what the interpreter of kernels gives.
struct Case {
  Kernel kernel;
  std::deque<GuardedArray> inputs, results;
  std::vector<op::HostTensor> expected;
  std::vector<double> parameters;
  double tolerance = 0;
  std::string name;
  StepProgram program;

  static std::vector<op::Array> arrays(const std::deque<GuardedArray>& guarded) {
    std::vector<op::Array> out;
    for (const GuardedArray& array : guarded) out.push_back(array.array());
    return out;
  }
};

/// Collects cases, so that one run of the compiler serves all.
class KernelSourceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = Emulator::why_unavailable(); !why.empty()) GTEST_SKIP() << why;
  }

  /// `inputs` as they lie; results are contiguous.
  void add(std::string name, Kernel kernel, const std::vector<op::Array>& inputs,
           const std::vector<op::HostTensor>& expected, double tolerance, std::int64_t misalignment = 0,
           std::vector<double> parameters = {}) {
    Case& one = cases_.emplace_back();
    one.kernel = std::move(kernel);
    one.name = std::move(name);
    one.tolerance = tolerance;
    one.parameters = std::move(parameters);
    one.expected = expected;
    for (const op::Array& input : inputs) one.inputs.emplace_back(input, misalignment);
    for (const op::HostTensor& tensor : empty_like(expected))
      one.results.emplace_back(tensor.array(), misalignment);
    auto program = kernel_program(one.kernel, Case::arrays(one.inputs), Case::arrays(one.results));
    ASSERT_TRUE(program) << one.name << ": " << program.error().to_text() << "\n" << to_text(one.kernel);
    one.program = std::move(*program);
  }

  /// The function with random inputs, against the reference.
  void add(std::string name, const ir::Function& function, double tolerance, std::uint64_t seed = 1,
           std::int64_t misalignment = 0) {
    const auto inputs = random_inputs(function, seed);
    const auto expected = value_or_throw(op::interpret(function, inputs));
    add(std::move(name), value_or_throw(build(function)), arrays_of(inputs), expected, tolerance,
        misalignment);
  }

  void run_all() {
    std::vector<StepProgram> programs;
    for (const Case& one : cases_) programs.push_back(one.program);
    Emulator emulator;
    const auto compiled = emulator.compile(programs);
    ASSERT_TRUE(compiled) << compiled.error().to_text();
    for (const Case& one : cases_)
      for (const ThreadOrder order : {ThreadOrder::forward, ThreadOrder::backward}) run(emulator, one, order);
    show_to_nvrtc(programs);
  }

  std::deque<Case> cases_;

 private:
  static void run(Emulator& emulator, const Case& one, ThreadOrder order) {
    SCOPED_TRACE(one.name);
    const auto inputs = Case::arrays(one.inputs), results = Case::arrays(one.results);
    const auto done = emulator.run(one.program, inputs, results, one.parameters, order);
    ASSERT_TRUE(done) << done.error().to_text() << to_text(one.program);
    for (std::size_t i = 0; i < results.size(); ++i) {
      EXPECT_TRUE(one.results[i].check());
      op::HostTensor got = value_or_throw(op::HostTensor::allocate(results[i].dtype, results[i].shape()));
      op::copy_elements(results[i], got.array());
      EXPECT_LE(difference(got, one.expected[i]), one.tolerance)
          << "result " << i << "\n"
          << to_text(one.kernel) << to_text(one.program)
          << (one.program.launches.empty() ? "" : one.program.launches[0].source->text);
    }
  }

  static void show_to_nvrtc(const std::vector<StepProgram>& programs) {
    if (!why_no_nvrtc().empty()) return;
    std::set<std::string> seen;
    std::size_t number = 0;
    for (const StepProgram& program : programs)
      for (const Launch& launch : program.launches) {
        if (!seen.insert(launch.source->text).second) continue;
        const auto taken = check_by_nvrtc(*launch.source, ++number % 2 == 0 ? "sm_80" : "sm_90");
        ASSERT_TRUE(taken) << taken.error().to_text();
      }
  }
};

std::string tensor(const char* dtype, const std::string& shape) { return cat(dtype, "[", shape, "]"); }

TEST_F(KernelSourceTest, ElementsOfEveryDtypeAtManyLengths) {
  for (const char* dtype :
       {"f64", "f32", "f16", "bf16", "i64", "i32", "i16", "i8", "u8", "u16", "u32", "u64"})
    for (const int n : {0, 1, 3, 4, 5, 31, 1000, 5000})
      for (const int misalignment : {0, 1}) {
        const std::string t = tensor(dtype, cat(n));
        const bool is_float = *dtype == 'f' || *dtype == 'b';
        add(cat(t, " misaligned by ", misalignment),
            *parsed(cat("func f(x: ", t, ", y: ", t, ") {\n  a: ", t, " = mul(x, y)\n  b: ", t, " = ",
                        is_float ? "tanh" : "square", "(a)\n  c: ", t, " = sub(b, x)\n  return c\n}")),
            is_float ? (std::string(dtype) == "bf16"  ? 0.02
                        : std::string(dtype) == "f16" ? 2e-3
                                                      : 1e-6)
                     : 0,
            static_cast<std::uint64_t>(n + 1), misalignment);
      }
  run_all();
}

TEST_F(KernelSourceTest, RandomRegionsAgreeWithTheReference) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    add(cat("f32 region ", seed), *RandomRegion(seed, Dtype::f32).function(2 + seed % 29), 1e-4, seed);
    add(cat("i32 region ", seed), *RandomRegion(seed, Dtype::i32).function(2 + seed % 29), 0, seed,
        static_cast<std::int64_t>(seed % 2));
  }
  run_all();
}

TEST_F(KernelSourceTest, RowsOfAnyLength) {
  for (const int n : {1, 2, 3, 10, 32, 33, 64, 130, 512, 520, 768, 1000, 4096, 4097, 20000, 40000})
    for (const char* op : {"softmax", "layer_norm"}) {
      const std::string t = tensor("f32", cat("3, ", n));
      add(cat(op, " of ", t), *parsed(cat("func f(x: ", t, ") {\n  y: ", t, " = ", op, "(x)\n  return y\n}")),
          3e-6, static_cast<std::uint64_t>(n));
    }
  for (const char* dtype : {"f64", "f16", "bf16"}) {
    const std::string t = tensor(dtype, "5, 2048");
    add(cat("log_softmax of ", t),
        *parsed(cat("func f(x: ", t, ") {\n  y: ", t, " = log_softmax(x)\n  return y\n}")),
        dtype == std::string("f64") ? 1e-12 : 0.03);
  }
  run_all();
}

/// Sums, products and extremes along rows, along columns, over both, of a middle axis.
TEST_F(KernelSourceTest, ReductionsOverAnyAxes) {
  struct Shape {
    const char *shape, *axes, *result;
  };
  const Shape shapes[] = {{"7, 300", "1", "7"},        {"300, 7", "0", "7"},      {"3, 50, 70", "1", "3, 70"},
                          {"3, 50, 70", "0, 2", "50"}, {"100000", "0", ""},       {"3, 90000", "1", "3"},
                          {"9000, 5", "0", "5"},       {"40, 1000", "0", "1000"}, {"2, 3, 4", "0, 1, 2", ""},
                          {"3, 0, 4", "1", "3, 4"}};
  for (const Shape& shape : shapes) {
    for (const char* op : {"sum", "l2_norm"})
      add(cat(op, " of f32[", shape.shape, "] over ", shape.axes),
          *parsed(cat("func f(x: f32[", shape.shape, "]) {\n  y: f32[", shape.result, "] = ", op,
                      "(x) {axes = [", shape.axes, "]}\n  return y\n}")),
          2e-6);
    add(cat("sum of i32[", shape.shape, "] over ", shape.axes),
        *parsed(cat("func f(x: i32[", shape.shape, "]) {\n  y: i32[", shape.result, "] = sum(x) {axes = [",
                    shape.axes, "]}\n  return y\n}")),
        0);
  }
  for (const char* op : {"max", "min", "prod"})
    for (const char* dtype : {"f32", "i64", "u8", "bf16"})
      for (const char* axes : {"0", "1"})
        add(cat(op, " of ", dtype, " over ", axes),
            *parsed(cat("func f(x: ", dtype, "[9, 40]) {\n  y: ", dtype, "[", *axes == '0' ? "40" : "9",
                        "] = ", op, "(x) {axes = [", axes, "]}\n  return y\n}")),
            dtype[0] == 'b'   ? 0.01
            : dtype[0] == 'f' ? 1e-5
                              : 0);
  for (const char* axes : {"0", "1"})
    for (const char* op : {"any", "all"})
      add(cat(op, " over ", axes),
          *parsed(cat("func f(x: bool[9, 40]) {\n  y: bool[", *axes == '0' ? "40" : "9", "] = ", op,
                      "(x) {axes = [", axes, "]}\n  return y\n}")),
          0);
  run_all();
}

/// What is computed around reductions over columns, in several passes and split over blocks.
TEST_F(KernelSourceTest, SeveralPassesOverColumnsAndOverFewLongRows) {
  for (const char* shape : {"50, 70", "9000, 3"})
    for (const char* axis : {"0", "1"}) {
      const std::string t = tensor("f32", shape);
      add(cat("softmax of ", t, " over ", axis),
          *parsed(cat("func f(x: ", t, ") {\n  y: ", t, " = softmax(x) {axis = ", axis, "}\n  return y\n}")),
          3e-6);
    }
  add("softmax of 1 row", *parsed("func f(x: f32[150000]) {\n  y: f32[150000] = softmax(x)\n  return y\n}"),
      3e-6);
  add("a sum and what it was made of",
      *parsed(
          "func f(x: f32[100000]) {\n  a: f32[100000] = tanh(x)\n  s: f32[] = sum(a)\n  t: f32[] = mul(s, "
          "2.0:f32)\n  return a, t\n}"),
      3e-6);
  add("middle axis with more around it",
      *parsed("func f(x: f32[3, 50, 70], y: f32[50, 1], w: f32[70]) {\n  a: f32[3, 50, 70] = mul(x, y)\n"
              "  b: f32[3, 50, 70] = relu(a)\n  s: f32[3, 70] = sum(b) {axes = [1]}\n"
              "  r: f32[3, 70] = mul(s, 0.5:f32)\n  d: f32[3, 70] = sub(w, r)\n  return d\n}"),
      1e-5);
  run_all();
}

TEST_F(KernelSourceTest, BroadcastAndTransposedOperands) {
  add("row and column",
      *parsed("func f(x: f32[40, 64], r: f32[64], c: f32[40, 1]) {\n  a: f32[40, 64] = add(x, r)\n"
              "  b: f32[40, 64] = mul(a, c)\n  return b\n}"),
      1e-6);
  add("odd row and column",
      *parsed("func f(x: f32[3, 40, 65], r: f32[65], c: f32[40, 1]) {\n  a: f32[3, 40, 65] = add(x, r)\n"
              "  b: f32[3, 40, 65] = mul(a, c)\n  return b\n}"),
      1e-6);
  for (const char* dtype : {"f32", "f16", "i8", "f64"}) {
    add(cat("transposed ", dtype),
        *parsed(cat("func f(x: ", dtype, "[70, 33], y: ", dtype, "[33, 70]) {\n  t: ", dtype,
                    "[33, 70] = transpose(x) {permutation = [1, 0]}\n  s: ", dtype,
                    "[33, 70] = add(t, y)\n  return s\n}")),
        dtype[1] == '1' ? 2e-3 : 1e-6);
    add(cat("four axes turned ", dtype),
        *parsed(cat("func f(x: ", dtype, "[3, 20, 4, 50]) {\n  t: ", dtype,
                    "[50, 3, 4, 20] = transpose(x) {permutation = [3, 0, 2, 1]}\n  s: ", dtype,
                    "[50, 3, 4, 20] = neg(t)\n  return s\n}")),
        0);
  }
  run_all();
}

/// An array of every `step`th element of a larger one along each axis, with some before it.
struct Strided {
  Strided(Dtype dtype, const op::Extents& shape, const op::Extents& steps, std::mt19937_64& random) {
    op::Extents outer = shape;
    for (std::size_t i = 0; i < shape.size(); ++i) outer[i] = shape[i] * std::abs(steps[i]) + 1;
    memory = random_tensor(dtype, outer, random);
    array = memory.array();
    array.layout.shape = shape;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      const std::int64_t whole = array.layout.strides[i];
      if (steps[i] < 0 && shape[i] > 0) array.layout.offset += whole * -steps[i] * (shape[i] - 1);
      array.layout.strides[i] = whole * steps[i];
    }
    dense = value_or_throw(op::HostTensor::allocate(dtype, shape));
    op::copy_elements(array, dense.array());
  }

  op::HostTensor memory, dense;
  op::Array array;
};

TEST_F(KernelSourceTest, ArraysMayLieInAnyWay) {
  std::mt19937_64 random(7);
  const auto elements = parsed(
      "func f(x: f32[6, 40], y: f32[6, 40]) {\n  a: f32[6, 40] = mul(x, y)\n  b: f32[6, 40] = tanh(a)\n"
      "  return b\n}");
  const auto rows = parsed(
      "func f(x: f32[6, 40], y: f32[6, 40]) {\n  a: f32[6, 40] = mul(x, y)\n"
      "  b: f32[6, 40] = softmax(a)\n  return b\n}");
  const auto columns = parsed(
      "func f(x: f32[6, 40], y: f32[6, 40]) {\n  a: f32[6, 40] = mul(x, y)\n"
      "  b: f32[40] = sum(a) {axes = [0]}\n  return b\n}");
  const op::Extents steps[] = {{1, 1}, {2, 1}, {-1, 1}, {1, -1}, {-2, 3}};
  for (const ir::FunctionRef& function : {elements, rows, columns})
    for (const op::Extents& step : steps)
      for (const std::int64_t misalignment : {0, 1}) {
        const Strided x(Dtype::f32, {6, 40}, step, random), y(Dtype::f32, {6, 40}, {1, 1}, random);
        const auto expected = value_or_throw(op::interpret(*function, std::vector{x.dense, y.dense}));
        add(cat("steps ", step[0], ", ", step[1], " misaligned by ", misalignment),
            value_or_throw(build(*function)), {x.array, y.array}, expected, 3e-6, misalignment);
      }
  run_all();
}

TEST_F(KernelSourceTest, NumbersAreRoundedAsTheHostRoundsThem) {
  for (const char* dtype : {"f32", "f16", "bf16", "f64", "i8", "u64", "i32"}) {
    const auto function = parsed(cat("func f(x: ", dtype, "[40]) {\n  y: ", dtype, "[40] = mul(x, $0:", dtype,
                                     ")\n  z: ", dtype, "[40] = add(y, $1:", dtype, ")\n  return z\n}"));
    const std::vector<double> parameters{3.3, 100.7};
    const auto inputs = random_inputs(*function, 3);
    op::InterpreterOptions options;
    options.parameters = parameters;
    const auto expected = value_or_throw(op::interpret(*function, inputs, options));
    add(cat("numbers of ", dtype), value_or_throw(build(*function)), arrays_of(inputs), expected,
        dtype[0] == 'i' || dtype[0] == 'u' ? 0
        : dtype[0] == 'b'                  ? 0.02
        : dtype[1] == '1'                  ? 2e-3
                                           : 1e-6,
        0, parameters);
  }
  run_all();
}

}  // namespace
