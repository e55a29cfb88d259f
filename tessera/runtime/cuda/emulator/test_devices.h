// The devices that tests of this folder run on: the emulated one everywhere, the first GPU where there is
// one.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tessera/base/text.h"
#include "tessera/runtime/cuda/cuda_device.h"
#include "tessera/runtime/cuda/emulator/emulated_blas.h"
#include "tessera/runtime/cuda/emulator/emulated_driver.h"
#include "tessera/runtime/cuda/emulator/emulator.h"

namespace tessera::runtime::cuda {

enum class TestDevice : std::uint8_t { emulated, gpu };

/// NVRTC, which is asked for a source once: tests have devices of their own, but many of the same kernels.
class RememberedModules final : public SourceCompiler {
 public:
  explicit RememberedModules(std::shared_ptr<const SourceCompiler> compiler)
      : compiler_(std::move(compiler)) {}

  [[nodiscard]] Result<std::vector<std::byte>> compile(const Source& source, int sm) const override {
    // What a source includes may have changed.
    if (source.text.find("#include") != std::string::npos) return compiler_->compile(source, sm);
    const std::string key = cat(sm, " ", source.entry, " ", source.file, "\n", source.text);
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = modules_.find(key); found != modules_.end()) return found->second;
    }
    auto made = compiler_->compile(source, sm);
    const std::lock_guard lock(mutex_);
    if (made) modules_.emplace(key, *made);
    return made;
  }
  [[nodiscard]] const std::string& identity() const override { return compiler_->identity(); }

 private:
  const std::shared_ptr<const SourceCompiler> compiler_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, std::vector<std::byte>> modules_;
};

/// One for all tests of the process.
inline Result<std::shared_ptr<const SourceCompiler>> remembered_modules() {
  static std::shared_ptr<const SourceCompiler> made;
  if (made == nullptr) made = std::make_shared<RememberedModules>(TESSERA_TRY(Nvrtc::open()));
  return made;
}

/// Kernels are not kept in files: each test sees its own.
inline Result<std::shared_ptr<CudaDevice>> open_test_device(TestDevice which, CudaOptions options = {}) {
  static const CodeStore nowhere("");
  options.store = &nowhere;
  if (which == TestDevice::gpu) {
    const Driver* driver = TESSERA_TRY(Driver::open());
    return CudaDevice::create(*driver, 0, TESSERA_TRY(remembered_modules()), options);
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
