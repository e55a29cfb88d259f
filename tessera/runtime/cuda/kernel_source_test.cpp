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

}  // namespace
