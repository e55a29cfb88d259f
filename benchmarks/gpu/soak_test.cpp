// The soak itself, on the emulated device: what it expects is right, and every tier comes up.
#include "benchmarks/gpu/soak.h"

#include "tessera/runtime/cuda/emulator/test_devices.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

TEST(Soak, HasAllTiersAndRightResults) {
  auto device = open_test_device(TestDevice::emulated);
  if (!device) GTEST_SKIP() << device.error().to_text();
  const auto copy = [](void* to, const void* from, std::size_t bytes, void* stream) {
    const auto address = [](const void* at) { return reinterpret_cast<CUdeviceptr>(at); };
    ASSERT_EQ(
        emulated_driver().cuMemcpyDtoDAsync(address(to), address(from), bytes, static_cast<CUstream>(stream)),
        CUDA_SUCCESS);
  };
  const std::string said = benchmarks::soak(*device, copy, 1200);
  EXPECT_NE(said.find("1200 updates, all right"), std::string::npos) << said;
  EXPECT_NE(said.find("recapture "), std::string::npos) << said;
}
