#include "tessera/runtime/cuda/emulator/emulator.h"

#include <gtest/gtest.h>

#include "tessera/runtime/cuda/emulator/nvrtc_check.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

Argument memory(Memory::Kind kind, std::uint32_t index) {
  return {.kind = Argument::Kind::memory, .memory = {kind, index, 0}};
}
Argument plain(std::int64_t value) { return {.bits = static_cast<std::uint64_t>(value)}; }

StepProgram one_launch(std::string text, Extent3 grid, Extent3 block, std::vector<Argument> arguments) {
  auto source = std::make_shared<Source>(Source{std::move(text), "entry"});
  Launch launch{.source = source, .grid = grid, .block = block, .arguments = std::move(arguments)};
  return {{launch}, {}};
}

constexpr const char* block_sum = R"(
extern "C" __global__ void entry(float* out, const float* in, long long n, float scale) {
  __shared__ float parts[8];
  float sum = 0.0f;
  for (long long i = threadIdx.x; i < n; i += blockDim.x) sum += in[i];
  for (int offset = 16; offset > 0; offset >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
  __syncthreads();
  float total = 0.0f;
  for (int i = 0; i < 8; ++i) total += parts[i];
  if (threadIdx.x == 0) out[blockIdx.x] = total * scale;
}
)";

class EmulatorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = Emulator::why_unavailable(); !why.empty()) GTEST_SKIP() << why;
  }
};

TEST_F(EmulatorTest, RunsBarriersShufflesAndNumbersInBothOrders) {
  const Argument number{.kind = Argument::Kind::number, .slot = 1, .dtype = ir::Dtype::f32};
  const StepProgram program =
      one_launch(block_sum, {2, 1, 1}, {256, 1, 1},
                 {memory(Memory::Kind::result, 0), memory(Memory::Kind::input, 0), plain(1000), number});
  Emulator emulator;
  ASSERT_TRUE(emulator.compile({&program, 1}));
  const std::vector<float> ones(1000, 1.0f);
  const auto in = op::HostTensor::of<float>(ir::Dtype::f32, {1000}, ones);
  for (const ThreadOrder order : {ThreadOrder::forward, ThreadOrder::backward}) {
    const auto out = value_or_throw(op::HostTensor::allocate(ir::Dtype::f32, {2}));
    const std::vector<double> numbers{9.0, 0.5};
    const auto done =
        emulator.run(program, std::vector{in.array()}, std::vector{out.array()}, numbers, order);
    ASSERT_TRUE(done) << done.error().to_text();
    EXPECT_EQ(out.values<float>()[0], 500.0f);
    EXPECT_EQ(out.values<float>()[1], 500.0f);
  }
}

TEST_F(EmulatorTest, ThreadsThatWaitInDifferentPlacesAreReported) {
  const StepProgram program = one_launch(
      "extern \"C\" __global__ void entry() { if (threadIdx.x == 0) __syncthreads(); else __syncwarp(); }",
      {1, 1, 1}, {32, 1, 1}, {});
  Emulator emulator;
  ASSERT_TRUE(emulator.compile({&program, 1}));
  EXPECT_FALSE(emulator.run(program, {}, {}));
}

TEST_F(EmulatorTest, ASourceThatIsWrongIsAnErrorWithItsLine) {
  const StepProgram program =
      one_launch("extern \"C\" __global__ void entry() {\n  nothing();\n}", {1, 1, 1}, {32, 1, 1}, {});
  Emulator emulator;
  const auto compiled = emulator.compile({&program, 1});
  ASSERT_FALSE(compiled);
  EXPECT_NE(compiled.error().to_text().find("source entry:2"), std::string::npos)
      << compiled.error().to_text();
}

TEST_F(EmulatorTest, WritesAroundAGuardedArrayAreFound) {
  const StepProgram program =
      one_launch("extern \"C\" __global__ void entry(int* out, long long at) { out[at] = 1; }", {1, 1, 1},
                 {1, 1, 1}, {memory(Memory::Kind::result, 0), plain(-1)});
  Emulator emulator;
  ASSERT_TRUE(emulator.compile({&program, 1}));
  const auto out = value_or_throw(op::HostTensor::allocate(ir::Dtype::i32, {3}));
  const GuardedArray guarded(out.array(), 1);
  EXPECT_TRUE(guarded.check());
  ASSERT_TRUE(emulator.run(program, {}, std::vector{guarded.array()}));
  EXPECT_FALSE(guarded.check());
}

TEST(NvrtcCheck, TakesTheSourceAndRefusesAWrongOne) {
  if (const std::string why = why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  const auto good = check_by_nvrtc({block_sum, "entry"}, "sm_90");
  EXPECT_TRUE(good) << good.error().to_text();
  EXPECT_FALSE(check_by_nvrtc({"extern \"C\" __global__ void entry() { nothing(); }", "entry"}, "sm_80"));
}

}  // namespace
