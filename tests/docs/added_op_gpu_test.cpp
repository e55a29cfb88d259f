// The op of docs/adding-an-op.md on the emulated GPU.
#include "tessera/engine/devices.h"
#include "tessera/runtime/cuda/emulator/test_devices.h"
#include "tests/docs/added_op_plans.h"

using namespace tessera;
using namespace tessera::fixture;

namespace {

class AddedOpOnGpu : public testing::Test {
 protected:
  void SetUp() override {
    auto opened =
        runtime::cuda::open_test_device(runtime::cuda::TestDevice::emulated,
                                        {.target = engine::gpu_target(), .plan_body = &engine::plan_body});
    if (!opened) GTEST_SKIP() << opened.error().to_text();
    device_ = *std::move(opened);
  }

  std::shared_ptr<runtime::Device> device_;
};

TEST_F(AddedOpOnGpu, IsFusedWithItsNeighbours) {
  EXPECT_EQ(steps_among_neighbours(*device_), "mul log_sigmoid exp sum\n");
}

/// The library of products has a bias and no such activation: that is a kernel with what follows.
TEST_F(AddedOpOnGpu, IsFusedBehindAProduct) {
  EXPECT_EQ(steps_behind_a_product(*device_), "matmul add\nlog_sigmoid add\n");
}

}  // namespace
