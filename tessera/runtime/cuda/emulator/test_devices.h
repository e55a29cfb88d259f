// The devices that tests of this folder run on: the emulated one everywhere, the first GPU where there is
// one.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tessera/runtime/cuda/cuda_device.h"
#include "tessera/runtime/cuda/emulator/emulated_blas.h"
#include "tessera/runtime/cuda/emulator/emulated_driver.h"
#include "tessera/runtime/cuda/emulator/emulator.h"

namespace tessera::runtime::cuda {

enum class TestDevice : std::uint8_t { emulated, gpu };

/// Kernels are not kept in files: each test sees its own.
inline Result<std::shared_ptr<CudaDevice>> open_test_device(TestDevice which, CudaOptions options = {}) {
  static const CodeStore nowhere("");
  options.store = &nowhere;
  if (which == TestDevice::gpu) {
    const Driver* driver = TESSERA_TRY(Driver::open());
    auto compiler = TESSERA_TRY(Nvrtc::open());
    return CudaDevice::create(*driver, 0, std::move(compiler), options);
  }
  if (const std::string why = Emulator::why_unavailable(); !why.empty())
    return Error(ErrorCode::unsupported, why);
  return CudaDevice::create(emulated_driver(), 0, emulated_compiler(), options, &open_emulated_blas);
}

/// A test on each of them; skipped, with the reason and without a device, where there is none.
class OnTestDevice : public ::testing::TestWithParam<TestDevice> {
 protected:
  void SetUp() override {
    auto opened = open_test_device(GetParam(), options());
    if (!opened) GTEST_SKIP() << opened.error().to_text();
    device_ = *std::move(opened);
  }
  [[nodiscard]] virtual CudaOptions options() const { return {}; }
  [[nodiscard]] bool is_emulated() const { return GetParam() == TestDevice::emulated; }

  std::shared_ptr<CudaDevice> device_;
};

inline auto all_test_devices() { return ::testing::Values(TestDevice::emulated, TestDevice::gpu); }
inline std::string test_device_name(const ::testing::TestParamInfo<TestDevice>& info) {
  return info.param == TestDevice::emulated ? "emulated" : "gpu";
}

}  // namespace tessera::runtime::cuda
