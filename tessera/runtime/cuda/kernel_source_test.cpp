#include "tessera/runtime/cuda/kernel_source.h"

#include <deque>
#include <limits>
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
    auto program = kernel_program(one.kernel, Case::arrays(one.inputs), Case::arrays(one.results), limits_);
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

  /// NVRTC sees every `shown`th source: where they differ by one operation, some tell enough.
  void run_all(std::size_t shown = 1) {
    std::vector<StepProgram> programs;
    for (const Case& one : cases_) programs.push_back(one.program);
    Emulator emulator;
    const auto compiled = emulator.compile(programs);
    ASSERT_TRUE(compiled) << compiled.error().to_text();
    for (const Case& one : cases_)
      for (const ThreadOrder order : {ThreadOrder::forward, ThreadOrder::backward}) run(emulator, one, order);
    show_to_nvrtc(programs, shown);
  }

  std::deque<Case> cases_;
  DeviceLimits limits_;  ///< of the device that the cases are for

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

  static void show_to_nvrtc(const std::vector<StepProgram>& programs, std::size_t shown) {
    if (!why_no_nvrtc().empty()) return;
    std::set<std::string> seen;
    std::size_t number = 0;
    for (const StepProgram& program : programs)
      for (const Launch& launch : program.launches) {
        if (!seen.insert(launch.source->text).second || seen.size() % shown != 0) continue;
        const auto taken = check_by_nvrtc(*launch.source, ++number % 2 == 0 ? "sm_80" : "sm_90");
        ASSERT_TRUE(taken) << taken.error().to_text();
      }
  }
};

std::string tensor(const char* dtype, const std::string& shape) { return cat(dtype, "[", shape, "]"); }

op::Array imagined(Dtype dtype, const op::Extents& shape, std::uintptr_t address) {
  return {dtype, op::contiguous(shape), reinterpret_cast<std::byte*>(address)};
}

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

/// Through all passes they stay in registers, and what does not fit there in the block's memory.
TEST_F(KernelSourceTest, LongRowsAreReadOnce) {
  struct Row {
    const char *dtype, *ops;
    int length;
    bool has_shared, is_run;
  };
  const char* const softmax = "  y: $ = softmax(x)\n";
  for (const Row& row : {Row{"f32", softmax, 40960, false, false}, Row{"f32", softmax, 45004, true, true},
                         Row{"f32", "  y: $ = layer_norm(x)\n", 51200, true, false},
                         Row{"f32", "  a: $ = tanh(x)\n  y: $ = softmax(a)\n", 40001, false, true},
                         Row{"bf16", softmax, 90008, true, false}}) {
    const std::string t = tensor(row.dtype, cat("64, ", row.length));
    std::string body = row.ops;
    for (std::size_t at = body.find('$'); at != std::string::npos; at = body.find('$'))
      body.replace(at, 1, t);
    const auto function = parsed(cat("func f(x: ", t, ") {\n", body, "  return y\n}"));
    if (row.is_run) add(body, *function, 3e-6);
    const Dtype dtype = *ir::parse_dtype(row.dtype);
    const std::vector<op::Array> x{
        {dtype, op::contiguous({64, row.length}), reinterpret_cast<std::byte*>(4096)}};
    const auto kernel = value_or_throw(kernel::build(*function));
    const StepProgram program = value_or_throw(kernel_program(kernel, x, x, {}));
    ASSERT_EQ(program.launches.size(), 1u) << body;
    EXPECT_EQ(program.launches[0].source->entry, "rows") << body;
    EXPECT_EQ(program.launches[0].shared_bytes > 0, row.has_shared) << body;
  }
  run_all();
}

// ---- rows that end in the block's memory

constexpr DeviceLimits large_blocks{227 * 1024}, usual_blocks{48 * 1024};

/// `ops` on so many rows of so many elements; "$" is their type.
ir::FunctionRef on_long_rows(std::string_view dtype, std::int64_t length, std::string_view ops,
                             std::int64_t rows = 64) {
  const std::string type = cat(dtype, "[", rows, ", ", length, "]");
  std::string body(ops);
  for (std::size_t at = body.find('$'); at != std::string::npos; at = body.find('$'))
    body.replace(at, 1, type);
  return parsed(cat("func f(x: ", type, ") {\n", body, "  return y\n}"));
}
constexpr std::string_view softmax_of_rows = "  y: $ = softmax(x)\n";
constexpr std::string_view norm_of_rows = "  y: $ = layer_norm(x)\n";

/// The first launch on a device with these limits, in place.
Launch long_row_launch(const ir::Function& function, const DeviceLimits& limits) {
  const op::ValueType type = *op::value_type(*function.params[0]->type);
  const std::vector<op::Array> x{
      {type.dtype, op::contiguous(op::extents_of(type.shape)), reinterpret_cast<std::byte*>(4096)}};
  return value_or_throw(kernel_program(value_or_throw(build(function)), x, x, limits)).launches.at(0);
}

struct RowLimit {
  DeviceLimits device;
  const char* dtype;
  std::int64_t longest;  ///< row that is read once
  std::int64_t width;    ///< elements of a vector, if rows are as long as a multiple of it
};
/// 80 registers of each of 512 threads, and what is left of the block's memory: of 40 KB if vectors are
/// shorter than 16 bytes.
constexpr RowLimit row_limits[] = {
    {usual_blocks, "f32", 51'200, 4}, {usual_blocks, "f16", 102'400, 8}, {usual_blocks, "f64", 25'600, 2},
    {large_blocks, "f32", 98'304, 4}, {large_blocks, "f16", 196'608, 8}, {large_blocks, "f64", 49'152, 2},
    {large_blocks, "f32", 51'200, 1}, {large_blocks, "f16", 61'440, 1},  {large_blocks, "f64", 25'600, 1},
    {large_blocks, "f32", 51'200, 2}, {usual_blocks, "f32", 51'200, 1},  {large_blocks, "f16", 102'400, 4},
};

TEST(LongRows, AreReadOnceUpToWhatABlockOfTheDeviceHas) {
  for (const RowLimit& limit : row_limits) {
    const auto launch_at = [&](std::int64_t length) {
      return long_row_launch(*on_long_rows(limit.dtype, length, softmax_of_rows), limit.device);
    };
    SCOPED_TRACE(cat(limit.dtype, " in ", limit.device.shared_bytes, " bytes, ", limit.width, " at once"));
    EXPECT_EQ(launch_at(limit.longest - limit.width).source->entry, "rows");
    EXPECT_EQ(launch_at(limit.longest).source->entry, "rows");
    EXPECT_EQ(launch_at(limit.longest + limit.width).source->entry, "long_rows");
  }
}

/// The block joins its totals in memory that the kernel declares.
TEST(LongRows, LeaveRoomForWhatTheBlockDeclares) {
  for (const RowLimit& limit : row_limits)
    for (const std::string_view ops : {softmax_of_rows, norm_of_rows}) {
      const std::int64_t length = limit.longest - (limit.width == 1 ? 1 : 0);
      const Launch launch = long_row_launch(*on_long_rows(limit.dtype, length, ops), limit.device);
      const std::string& text = launch.source->text;
      std::size_t declared = 0;
      for (std::size_t at = text.find("__shared__ "); at != std::string::npos;
           at = text.find("__shared__ ", at + 1)) {
        if (text.compare(at, 16, "__shared__ float") == 0) declared += 32 * 4;
        if (text.compare(at, 17, "__shared__ double") == 0) declared += 32 * 8;
      }
      EXPECT_GT(declared, 0u) << text;
      EXPECT_LE(launch.shared_bytes + declared + 1024, limit.device.shared_bytes) << text;
    }
}

TEST(LongRows, OfOneSourceHaveTheMemoryThatEachNeeds) {
  const auto launch_at = [](std::int64_t length, const DeviceLimits& limits) {
    return long_row_launch(*on_long_rows("f32", length, softmax_of_rows), limits);
  };
  const Launch some = launch_at(51'000, large_blocks), all = launch_at(98'304, large_blocks);
  EXPECT_EQ(some.source->text, all.source->text);
  EXPECT_EQ(some.source->text, launch_at(51'000, usual_blocks).source->text);
  EXPECT_EQ(some.shared_bytes, 5u * 512 * 16);
  EXPECT_EQ(all.shared_bytes, 28u * 512 * 16);
  EXPECT_EQ(launch_at(40'960, large_blocks).shared_bytes, 0u);
}

TEST(LongRows, ThatOnePassReadsAreNotHeld) {
  const auto sums = parsed("func f(x: f32[64, 45000]) {\n  y: f32[64] = sum(x) {axes = [1]}\n  return y\n}");
  const std::vector<op::Array> x{imagined(Dtype::f32, {64, 45000}, 1 << 20)};
  const std::vector<op::Array> y{imagined(Dtype::f32, {64}, 1 << 30)};
  const auto program = value_or_throw(kernel_program(value_or_throw(build(*sums)), x, y, large_blocks));
  EXPECT_EQ(program.launches.at(0).source->entry, "long_rows");
}

/// Of x and of z. What all rows have, such as b, is in the caches when it is read again.
TEST(LongRows, OfWhichNoneIsReadTwiceAreNotHeld) {
  const auto entry = [](std::string_view subtracted_from) {
    const auto function =
        parsed(cat("func f(x: f32[64, 24000], z: f32[64, 24000], b: f32[24000]) {\n"
                   "  a: f32[64, 24000] = add(x, b)\n  m: f32[64, 1] = max(a) {axes = [1], keepdims = true}\n"
                   "  c: f32[64, 24000] = add(z, b)\n  y: f32[64, 24000] = sub(",
                   subtracted_from, ", m)\n  return y\n}"));
    const std::vector<op::Array> inputs{imagined(Dtype::f32, {64, 24000}, 1 << 20),
                                        imagined(Dtype::f32, {64, 24000}, 1 << 25),
                                        imagined(Dtype::f32, {24000}, 1 << 26)};
    const std::vector<op::Array> y{imagined(Dtype::f32, {64, 24000}, 1 << 30)};
    const Kernel kernel = value_or_throw(build(*function));
    return value_or_throw(kernel_program(kernel, inputs, y, large_blocks)).launches.at(0).source->entry;
  };
  EXPECT_EQ(entry("c"), "long_rows");
  EXPECT_EQ(entry("a"), "rows");
}

/// Where a multiprocessor has room for one block, fewer rows than there are of those are cut into parts.
TEST(LongRows, AreHeldWhereThereAreBlocksForTheWholeDevice) {
  constexpr DeviceLimits device{.shared_bytes = 227 * 1024, .multiprocessors = 132};
  const auto entry = [&](std::int64_t rows, std::int64_t length) {
    return long_row_launch(*on_long_rows("f32", length, softmax_of_rows, rows), device).source->entry;
  };
  EXPECT_EQ(entry(131, 98'304), "long_rows");
  EXPECT_EQ(entry(132, 98'304), "rows");
  const std::int64_t in_half_of_the_memory = (20 + 14) * 512 * 4;
  EXPECT_EQ(entry(131, in_half_of_the_memory + 4), "long_rows");
  EXPECT_EQ(entry(64, in_half_of_the_memory), "rows");
  EXPECT_EQ(entry(63, in_half_of_the_memory), "long_rows");
}

/// One that is stored before the next is loaded would be waited for.
TEST(LongRows, ComeToTheBlocksMemoryInBatches) {
  const std::string text =
      long_row_launch(*on_long_rows("f32", 96'000, softmax_of_rows), large_blocks).source->text;
  const std::size_t loop = text.find("Vector<float, 4> fetched0[4];"),
                    load = text.find("load(fetched0[u]", loop);
  ASSERT_NE(load, std::string::npos) << text;
  const std::size_t next_loop = text.find("for (int u = 0; u < 4; ++u) {", load);
  EXPECT_LT(next_loop, text.find("h0[", loop)) << text;
  EXPECT_EQ(text.find("load(h0"), std::string::npos) << text;
}

/// Longer ones are cut into parts, as those of other tests.
TEST_F(KernelSourceTest, RowsUpToTheLimitsOfDevices) {
  limits_ = usual_blocks;
  add("f32 rows of 51,200", *on_long_rows("f32", 51'200, softmax_of_rows), 3e-6);
  limits_ = large_blocks;
  add("f32 rows of 98,300", *on_long_rows("f32", 98'300, softmax_of_rows), 3e-6);
  add("f32 rows of 51,199", *on_long_rows("f32", 51'199, softmax_of_rows), 3e-6);
  add("f64 rows", *on_long_rows("f64", 49'152, softmax_of_rows), 1e-12);
  add("f16 rows", *on_long_rows("f16", 156'152, norm_of_rows), 2e-3);
  add("f16 rows of single elements", *on_long_rows("f16", 61'439, norm_of_rows), 2e-3);
  add("rows of two axes",
      *parsed("func f(x: f32[64, 60, 400], b: f32[60, 1], z: f32[64, 60, 400]) {\n"
              "  a: f32[64, 60, 400] = add(x, b)\n  c: f32[64, 60, 400] = mul(a, z)\n"
              "  m: f32[64, 1, 1] = max(c) {axes = [1, 2], keepdims = true}\n"
              "  y: f32[64, 60, 400] = sub(c, m)\n  return y\n}"),
      3e-6);
  add("two arrays",
      *parsed("func f(x: f32[64, 40000], m: f32[64, 40000]) {\n  a: f32[64, 40000] = add(x, m)\n"
              "  y: f32[64, 40000] = softmax(a)\n  return y\n}"),
      3e-6);
  EXPECT_GT(cases_.back().program.launches.at(0).shared_bytes, usual_shared_bytes);
  for (const Case& one : cases_) EXPECT_EQ(one.program.launches.at(0).source->entry, "rows") << one.name;
  run_all();
}

TEST_F(KernelSourceTest, ALongRowIsWrittenInItsPlace) {
  const auto function = on_long_rows("f32", 98'304, softmax_of_rows);
  const auto inputs = random_inputs(*function, 2);
  const auto expected = value_or_throw(op::interpret(*function, inputs));
  const GuardedArray both(inputs[0].array());
  const std::vector<op::Array> arrays{both.array()};
  const StepProgram program =
      value_or_throw(kernel_program(value_or_throw(build(*function)), arrays, arrays, large_blocks));
  Emulator emulator;
  ASSERT_TRUE(emulator.compile({&program, 1}));
  ASSERT_TRUE(emulator.run(program, arrays, arrays));
  op::HostTensor got = value_or_throw(op::HostTensor::allocate(Dtype::f32, expected[0].shape()));
  op::copy_elements(both.array(), got.array());
  EXPECT_LE(difference(got, expected[0]), 3e-6);
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
    const auto bits = fixture::slot_bits(*function, parameters);
    options.parameters = bits;
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

// ---- every operation on numbers at the edges

std::vector<double> edges(Dtype dtype) {
  constexpr double infinity = std::numeric_limits<double>::infinity(),
                   nan = std::numeric_limits<double>::quiet_NaN();
  if (ir::is_float(dtype))
    return {0.0,  -0.0,   1.0,   -1.0, 0.5,  -0.5,  1.5,      2.5,       -2.5,
            7.25, 100.75, 1e-40, 6e4,  3e38, -1e10, infinity, -infinity, nan};
  return {0,      1,      -1, 2, -2, 7, -7, 63, 64, 100, 127, -128, 32767, 2147483647.0, -2147483648.0,
          9.2e18, -9.2e18};
}

/// All pairs of edges as two arrays.
std::vector<op::HostTensor> pairs_of_edges(Dtype dtype) {
  const std::vector<double> numbers = edges(dtype);
  std::vector<double> first, second;
  for (const double a : numbers)
    for (const double b : numbers) {
      first.push_back(a);
      second.push_back(b);
    }
  const auto count = static_cast<std::int64_t>(first.size());
  std::vector<op::HostTensor> out;
  for (const auto& side : {first, second}) {
    const auto wide = op::HostTensor::of<double>(Dtype::f64, {count}, side);
    out.push_back(value_or_throw(op::HostTensor::allocate(dtype, {count})));
    op::copy_elements(wide.array(), out.back().array());
  }
  return out;
}

/// A kernel of one operation of as many arrays of `from` as it has operands.
Kernel kernel_of(ScalarOpcode opcode, Dtype from, Dtype to) {
  Kernel out;
  const std::size_t count = ir::info(opcode).arity;
  out.input_count = 2;
  out.output_count = 1;
  out.outer_axes = 1;
  out.fixed_sizes = {-1};
  for (std::uint32_t i = 0; i < 3; ++i)
    out.operands.push_back({i < 2 ? from : to, i, {Start()}, {{0, 0, 1}}, {}, false});
  out.body.push_back({InstructionKind::load, {}, from, 0, {}, 0});
  out.body.push_back({InstructionKind::load, {}, from, 1, {}, 0});
  Instruction operation{
      InstructionKind::operation, opcode, to, 0, {0, count > 1 ? 1u : no_value, no_value}, 0};
  if (count == 3) operation.operands = {0, 1, 1};
  if (opcode == ScalarOpcode::select) {
    out.body.push_back(
        {InstructionKind::operation, ScalarOpcode::ne, Dtype::boolean, 0, {0, 1, no_value}, 0});
    operation.operands = {2, 0, 1};
  }
  if (opcode != ScalarOpcode::cast && opcode != ScalarOpcode::bitcast && to != Dtype::boolean)
    operation.dtype = wide_dtype(from);
  out.body.push_back(operation);
  auto last = static_cast<ValueId>(out.body.size() - 1);
  if (operation.dtype != to) {
    out.body.push_back(
        {InstructionKind::operation, ScalarOpcode::cast, to, 0, {last, no_value, no_value}, 0});
    ++last;
  }
  out.stores.push_back({2, last});
  return out;
}

bool is_for(ScalarOpcode opcode, Dtype dtype) {
  using enum ScalarOpcode;
  const bool is_bits = opcode == bit_and || opcode == bit_or || opcode == bit_xor || opcode == bit_not;
  if (dtype == Dtype::boolean) return is_bits || opcode == eq || opcode == ne || opcode == select;
  if (is_bits || opcode == shl || opcode == shr || opcode == popcount) return !ir::is_float(dtype);
  const bool is_any = opcode <= max || opcode == neg || opcode == abs || opcode == sign || opcode == select ||
                      opcode == fma || opcode == fmod || opcode == pow;
  return is_any || ir::is_float(dtype);
}

class EdgesTest : public KernelSourceTest {
 protected:
  void add_edges(ScalarOpcode opcode, Dtype from, Dtype to, double tolerance) {
    const Kernel kernel = kernel_of(opcode, from, to);
    const auto inputs = pairs_of_edges(from);
    const std::vector<op::HostTensor> expected{
        value_or_throw(op::HostTensor::allocate(to, inputs[0].shape()))};
    Scratch scratch;
    ASSERT_TRUE(kernel::run(Interpreter(kernel), arrays_of(inputs), arrays_of(expected), {}, scratch));
    add(cat(ir::to_string(opcode), " of ", from, " to ", to), kernel, arrays_of(inputs), expected, tolerance);
  }
};

TEST_F(EdgesTest, EveryOperationHasTheReferencesValues) {
  for (std::size_t i = 0; i < ir::scalar_opcode_count; ++i) {
    const auto opcode = static_cast<ScalarOpcode>(i);
    if (opcode == ScalarOpcode::cast || opcode == ScalarOpcode::bitcast) continue;
    for (const Dtype dtype : {Dtype::f32, Dtype::f64, Dtype::i64, Dtype::u64, Dtype::i8, Dtype::boolean})
      if (is_for(opcode, dtype))
        add_edges(opcode, dtype, ir::info(opcode).makes_boolean ? Dtype::boolean : dtype,
                  dtype == Dtype::f32   ? 1e-6
                  : dtype == Dtype::f64 ? 1e-14
                                        : 0);
  }
  run_all(3);
}

TEST_F(EdgesTest, EveryConversionHasTheReferencesValues) {
  for (const Dtype from : ir::all_dtypes())
    for (const Dtype to : ir::all_dtypes())
      if (from != to) add_edges(ScalarOpcode::cast, from, to, 0);
  const std::pair<Dtype, Dtype> same_bits[] = {
      {Dtype::f32, Dtype::i32}, {Dtype::f32, Dtype::u32}, {Dtype::i32, Dtype::f32}, {Dtype::u32, Dtype::f32},
      {Dtype::f64, Dtype::i64}, {Dtype::i64, Dtype::f64}, {Dtype::u64, Dtype::f64}, {Dtype::f64, Dtype::u64},
      {Dtype::i32, Dtype::u32}, {Dtype::i64, Dtype::u64}};
  for (const auto& [from, to] : same_bits) add_edges(ScalarOpcode::bitcast, from, to, 0);
  run_all(3);
}

// ---- what runs cannot show here

TEST_F(KernelSourceTest, AResultMayStandInPlaceOfAnInput) {
  for (const char* shape : {"40, 500", "3, 70001", "30000, 4"}) {
    const std::string t = tensor("f32", shape);
    for (const char* axis : {"0", "1"}) {
      const auto function = parsed(cat("func f(x: ", t, ") {\n  s: ", t, " = softmax(x) {axis = ", axis,
                                       "}\n  y: ", t, " = sin(s)\n  return y\n}"));
      const auto inputs = random_inputs(*function, 2);
      const auto expected = value_or_throw(op::interpret(*function, inputs));
      const GuardedArray both(inputs[0].array());
      const std::vector<op::Array> arrays{both.array()};
      const StepProgram program =
          value_or_throw(kernel_program(value_or_throw(build(*function)), arrays, arrays, {}));
      Emulator emulator;
      ASSERT_TRUE(emulator.compile({&program, 1}));
      ASSERT_TRUE(emulator.run(program, arrays, arrays));
      op::HostTensor got = value_or_throw(op::HostTensor::allocate(Dtype::f32, expected[0].shape()));
      op::copy_elements(both.array(), got.array());
      EXPECT_LE(difference(got, expected[0]), 3e-6) << t << " along " << axis;
    }
  }
}

TEST(KernelSource, SourcesDoNotDependOnSizes) {
  const auto text_at = [](const char* body, std::int64_t rows, std::int64_t columns) {
    const Kernel kernel =
        built(cat("func f[N, M](x: f32[N, M]) {\n  y: f32[N, M] = ", body, "(x)\n  return y\n}"));
    const std::vector<op::Array> in{imagined(Dtype::f32, {rows, columns}, 1 << 20)};
    const std::vector<op::Array> out{imagined(Dtype::f32, {rows, columns}, 1 << 30)};
    return value_or_throw(kernel_program(kernel, in, out, {})).launches.at(0).source->text;
  };
  EXPECT_EQ(text_at("tanh", 3, 5), text_at("tanh", 1000, 70001));
  EXPECT_EQ(text_at("softmax", 3, 4096), text_at("softmax", 100, 2048));
  EXPECT_EQ(text_at("softmax", 3, 16), text_at("softmax", 100000, 128));
}

TEST(KernelSource, ColumnsHaveTwiceTheThreadsIfTheyReadAtOnceThen) {
  const auto threads_at = [](std::int64_t rows) {
    const Kernel kernel =
        built("func f[N, M](x: f32[N, M]) {\n  y: f32[M] = sum(x) {axes = [0]}\n  return y\n}");
    const std::vector<op::Array> in{imagined(Dtype::f32, {rows, 512}, 1 << 20)};
    const std::vector<op::Array> out{imagined(Dtype::f32, {512}, 1 << 30)};
    const Launch launch = value_or_throw(kernel_program(kernel, in, out, {})).launches.at(0);
    return launch.block.x * launch.block.y;
  };
  EXPECT_EQ(threads_at(32), 256u);
  EXPECT_EQ(threads_at(33), 512u);
  EXPECT_EQ(threads_at(64), 512u);
  EXPECT_EQ(threads_at(65), 256u);
}

TEST(KernelSource, ArraysOfMoreThanTwoBillionElementsHaveWideIndices) {
  if (const std::string why = why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  for (const char* body : {"tanh(x)", "softmax(x)", "softmax(x) {axis = 0}"}) {
    const Kernel kernel =
        built(cat("func f[N, M](x: f32[N, M]) {\n  y: f32[N, M] = ", body, "\n  return y\n}"));
    const op::Extents shape{3'000'000, 4096};
    const StepProgram program =
        value_or_throw(kernel_program(kernel, std::vector{imagined(Dtype::f32, shape, 1 << 20)},
                                      std::vector{imagined(Dtype::f32, shape, 1ULL << 40)}, {}));
    const Source& source = *program.launches.at(0).source;
    EXPECT_NE(source.text.find("typedef long long index"), std::string::npos);
    const auto taken = check_by_nvrtc(source, "sm_90");
    EXPECT_TRUE(taken) << taken.error().to_text();
  }
}

TEST(KernelSource, AThousandInstructionsAreOneShortSource) {
  if (const std::string why = why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  std::string text = "func f(x: f32[1024]) {\n  a0: f32[1024] = add(x, $0:f32)\n";
  for (int i = 1; i < 1000; ++i) text += cat("  a", i, ": f32[1024] = add(a", i - 1, ", $", i, ":f32)\n");
  const Kernel kernel = built(text + "  return a999\n}");
  const StepProgram program =
      value_or_throw(kernel_program(kernel, std::vector{imagined(Dtype::f32, {1024}, 1 << 20)},
                                    std::vector{imagined(Dtype::f32, {1024}, 1 << 30)}, {}));
  ASSERT_EQ(program.launches.size(), 1u);
  EXPECT_LT(program.launches[0].source->text.size(), 120'000u);
  const auto taken = check_by_nvrtc(*program.launches[0].source, "sm_90");
  EXPECT_TRUE(taken) << taken.error().to_text();
}

/// Of so many calls; the value of number `held` is a result, too.
std::string long_chain(int count, int held, std::string_view dtype = "f32") {
  const std::string type = cat(dtype, "[37]");
  std::string text = cat("func f(x: ", type, ", y: ", type, ") {\n  a0: ", type, " = mul(x, y)\n");
  for (int i = 1; i < count; ++i)
    text += cat("  m", i, ": ", type, " = add(a", i - 1, ", y)\n  a", i, ": ", type, " = mul(m", i, ", x)\n");
  return cat(text, "  return a", count - 1, held < 0 ? "" : cat(", a", held), "\n}");
}

TEST_F(KernelSourceTest, LongChainsAreLoops) {
  add("chain", *parsed(long_chain(500, -1)), 1e-4);
  EXPECT_NE(cases_.back().program.launches[0].source->text.find("< 499; ++time"), std::string::npos);
  add("with a value that is kept", *parsed(long_chain(700, 300)), 1e-4);
  add("of halves", *parsed(long_chain(400, -1, "bf16")), 0.1);
  run_all();
}

TEST(KernelSource, MoreArgumentsThanALaunchTakesAreAnError) {
  std::string params, text;
  for (int i = 0; i < 5000; ++i) {
    params += cat(i == 0 ? "" : ", ", "x", i, ": f32[8]");
    text += cat("  a", i, ": f32[8] = add(", i == 0 ? "x0" : cat("a", i - 1), ", x", i, ")\n");
  }
  const Kernel kernel = built(cat("func f(", params, ") {\n", text, "  return a4999\n}"));
  std::vector<op::Array> inputs(5000, imagined(Dtype::f32, {8}, 1 << 20));
  const auto program = kernel_program(kernel, inputs, std::vector{imagined(Dtype::f32, {8}, 1 << 30)}, {});
  ASSERT_FALSE(program);
  EXPECT_NE(program.error().to_text().find("bytes of arguments"), std::string::npos);
}

}  // namespace
