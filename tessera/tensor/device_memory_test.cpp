// What happens when a GPU has no more memory; on the emulated device and on a GPU where there is one.
#include <gtest/gtest.h>

#include "tessera/engine/engine.h"
#include "tessera/runtime/cuda/emulator/test_devices.h"
#include "tessera/tensor/create.h"
#include "tessera/tensor/ops.h"

using namespace tessera;
using runtime::cuda::TestDevice;

namespace {

struct MemoryWay {
  TestDevice device;
  bool plans;
};

class DeviceOutOfMemory : public ::testing::TestWithParam<MemoryWay> {
 protected:
  void SetUp() override {
    runtime::cuda::emulated_state().memory_bytes = std::uint64_t{4} << 20;  // what is emulated is slow
    auto opened = runtime::cuda::open_test_device(GetParam().device);
    if (!opened) GTEST_SKIP() << opened.error().to_text();
    device_ = *std::move(opened);
    engine_ = engine::Engine::create(
        {.plans = {.enabled = GetParam().plans, .threshold = 0, .wait = true}, .device = device_});
  }
  void TearDown() override {
    runtime::cuda::emulated_state().memory_bytes = runtime::cuda::EmulatedState().memory_bytes;
  }
  [[nodiscard]] std::int64_t memory_bytes() const {
    return static_cast<std::int64_t>(device_->context()->memory_bytes());
  }
  /// Floats of so many bytes, computed on the device.
  [[nodiscard]] Tensor computed(std::int64_t bytes) const {
    return full({bytes / 4}, 1.5, {.engine = engine_}) + 1.0;
  }
  void expect_usable() const { EXPECT_EQ(computed(64).to_vector<float>(), std::vector<float>(16, 2.5f)); }

  std::shared_ptr<runtime::cuda::CudaDevice> device_;
  std::shared_ptr<engine::Engine> engine_;
};

TEST_P(DeviceOutOfMemory, IsAnErrorThatLeavesTheEngineUsable) {
  expect_usable();
  const std::uint64_t used = engine_->memory().used;
  for (int i = 0; i < 3; ++i) {
    const Tensor large = computed(memory_bytes() + 4096);
    try {
      eval(large);
      FAIL() << "there is no such memory";
    } catch (const Exception& exception) {
      EXPECT_EQ(exception.error().code(), ErrorCode::memory) << exception.what();
      const std::string said = exception.error().to_text();
      EXPECT_NE(said.find("device_memory_test.cpp"), std::string::npos) << said;
      EXPECT_TRUE(said.find("'full'") != std::string::npos || said.find("'add'") != std::string::npos)
          << said;
    }
    EXPECT_FALSE(large.is_evaluated());
    expect_usable();
  }
  EXPECT_LE(engine_->memory().used, used + 4096);
}

TEST_P(DeviceOutOfMemory, MemoryThatIsGivenUpServesAgain) {
  for (int round = 0; round < 2; ++round) {
    std::vector<Tensor> held;
    bool is_full = false;
    for (int i = 0; i < 9 && !is_full; ++i) {
      held.push_back(computed(memory_bytes() / 8));
      try {
        eval(held.back());
      } catch (const Exception& exception) {
        is_full = true;
        EXPECT_EQ(exception.error().code(), ErrorCode::memory) << exception.what();
      }
    }
    EXPECT_TRUE(is_full);
    EXPECT_GE(held.size(), 4u);
    EXPECT_EQ(held.front().item<float>({7}), 2.5f) << "what was there before stays";
    held.clear();
    expect_usable();
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceOutOfMemory,
                         testing::Values(MemoryWay{TestDevice::emulated, false},
                                         MemoryWay{TestDevice::emulated, true},
                                         MemoryWay{TestDevice::gpu, false}, MemoryWay{TestDevice::gpu, true}),
                         [](const auto& test) {
                           return std::string(test.param.device == TestDevice::gpu ? "gpu" : "emulated") +
                                  (test.param.plans ? "_planned" : "_streamed");
                         });

}  // namespace
