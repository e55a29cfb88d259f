// Tensors shared with other libraries on a GPU, and the order of the streams; on the emulated device and on a
// GPU where there is one.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "tessera/engine/engine.h"
#include "tessera/runtime/cuda/emulator/test_devices.h"
#include "tessera/tensor/create.h"
#include "tessera/tensor/dlpack.h"
#include "tessera/tensor/dlpack_layout.h"
#include "tessera/tensor/ops.h"

using namespace tessera;
using runtime::cuda::TestDevice;

namespace {

/// f32 of this byte four times.
constexpr unsigned char filler = 0x3f;
constexpr float filler_value = std::bit_cast<float>(0x3f3f3f3fu);

class DeviceDlpack : public runtime::cuda::OnTestDevice {
 protected:
  void SetUp() override {
    OnTestDevice::SetUp();
    if (device_ == nullptr) return;
    engine_ = engine::Engine::create({.device = device_});
    current_.emplace(value_or_throw(device_->context()->enter()));
    other_ = value_or_throw(runtime::cuda::Stream::create(device_->context()));
    runtime::cuda::emulated_state().waiting_streams.clear();
  }
  void TearDown() override {
    if (memory_ != nullptr) device_->memory().free(memory_, byte_size());
  }

  /// So much on a GPU that what does not wait comes too early.
  [[nodiscard]] std::int64_t size() const { return is_emulated() ? 64 : std::int64_t{1} << 26; }
  [[nodiscard]] std::size_t byte_size() const { return static_cast<std::size_t>(size()) * 4; }
  [[nodiscard]] std::intptr_t other() const { return reinterpret_cast<std::intptr_t>(other_->handle()); }
  [[nodiscard]] std::intptr_t own() const {
    return reinterpret_cast<std::intptr_t>(device_->stream().handle());
  }
  static std::vector<std::intptr_t>& waiting() { return runtime::cuda::emulated_state().waiting_streams; }

  /// A tensor of another library, whose stream is still writing it.
  DLManagedTensor* produced() {
    if (memory_ == nullptr) memory_ = value_or_throw(device_->memory().allocate(byte_size()));
    const runtime::cuda::Driver& driver = device_->context()->driver();
    const auto at = runtime::cuda::device_address(memory_);
    for (int i = 0; i < 20; ++i) driver.cuMemsetD8Async(at, 0x40, byte_size(), other_->handle());
    driver.cuMemsetD8Async(at, filler, byte_size(), other_->handle());
    shape_ = size();
    managed_ = {
        .dl_tensor = {memory_, {2, 0}, 1, {2, 32, 1}, &shape_, nullptr, 0},
        .manager_ctx = this,
        .deleter = [](DLManagedTensor* self) { ++static_cast<DeviceDlpack*>(self->manager_ctx)->deleted_; }};
    return &managed_;
  }

  std::shared_ptr<engine::Engine> engine_;
  std::optional<runtime::cuda::Current> current_;
  std::shared_ptr<const runtime::cuda::Stream> other_;
  std::byte* memory_ = nullptr;
  DLManagedTensor managed_{};
  std::int64_t shape_ = 0;
  int deleted_ = 0;
};

TEST_P(DeviceDlpack, AnImportComesBehindItsProducer) {
  Tensor x = from_dlpack(produced(), {.engine = engine_, .stream = other()});
  EXPECT_EQ(x.storage(), memory_) << "nothing is copied";
  Tensor smallest = min(x * 2.0), largest = max(x);
  EXPECT_EQ(smallest.item<float>(), 2 * filler_value);
  EXPECT_EQ(largest.item<float>(), filler_value);
  if (is_emulated()) {
    EXPECT_EQ(waiting(), std::vector{own()});
  }
  EXPECT_EQ(deleted_, 0);
  smallest = largest = Tensor();
  const Tensor part = x.slice({{1, 3}});
  eval(part);
  x = Tensor();
  EXPECT_EQ(deleted_, 0) << "a view uses it";
  EXPECT_EQ(part.to_vector<float>(), (std::vector<float>{filler_value, filler_value}));
}

TEST_P(DeviceDlpack, TheOwnerIsToldOnce) {
  {
    const Tensor x = from_dlpack(produced(), {.engine = engine_, .stream = other()});
    eval(x + 1.0);
  }
  EXPECT_EQ(deleted_, 1);
}

TEST_P(DeviceDlpack, AnExportComesBeforeItsReceiver) {
  Tensor x = full({size()}, 1.5, {.engine = engine_});
  for (int i = 0; i < 10; ++i) x = sqrt(x * x);
  DLManagedTensor* given = to_dlpack(x + 1.0, {.stream = other()});
  EXPECT_EQ(given->dl_tensor.device.device_type, 2);
  EXPECT_EQ(given->dl_tensor.device.device_id, 0);
  if (is_emulated()) {
    EXPECT_EQ(waiting(), std::vector{other()});
  }
  std::vector<float> got(static_cast<std::size_t>(size()));
  const runtime::cuda::Driver& driver = device_->context()->driver();
  const auto at = reinterpret_cast<CUdeviceptr>(given->dl_tensor.data);
  ASSERT_EQ(driver.cuMemcpyDtoHAsync(got.data(), at, byte_size(), other_->handle()), CUDA_SUCCESS);
  ASSERT_TRUE(other_->wait());
  EXPECT_TRUE(std::all_of(got.begin(), got.end(), [](float value) { return value == 2.5f; }));
  waiting().clear();
  given->deleter(given);
  if (is_emulated()) {
    EXPECT_EQ(waiting(), std::vector{own()}) << "the memory may be used again behind the receiver";
  }
}

TEST_P(DeviceDlpack, NobodyWaitsWhereTheCallerCaresForTheOrder) {
  const DlpackOptions options{.engine = engine_, .stream = DlpackOptions::no_stream};
  const Tensor x = full({4}, 1.5, {.engine = engine_});
  const Tensor back = from_dlpack(to_dlpack(x, options), options);
  EXPECT_EQ(back.to_vector<float>(), (std::vector<float>(4, 1.5f)));
  if (is_emulated()) {
    EXPECT_TRUE(waiting().empty());
  }
}

TEST_P(DeviceDlpack, MemoryOfOthersIsRefused) {
  float host = 0;
  DLManagedTensor* given = produced();
  given->dl_tensor.data = &host;
  EXPECT_THROW((void)from_dlpack(given, {.engine = engine_}), Exception);
  EXPECT_EQ(deleted_, 1);
  given = produced();
  given->dl_tensor.device.device_id = 7;
  EXPECT_THROW((void)from_dlpack(given, {.engine = engine_}), Exception);
  EXPECT_EQ(deleted_, 2);
  // The device is as it was.
  EXPECT_EQ((full({2}, 1, {.engine = engine_}) + 1.0).to_vector<int>(), (std::vector<int>{2, 2}));
}

TEST_P(DeviceDlpack, AStreamThatIsCapturedIsRefused) {
  DLManagedTensor* given = produced();
  ASSERT_TRUE(other_->wait());
  const runtime::cuda::Driver& driver = device_->context()->driver();
  ASSERT_EQ(driver.cuStreamBeginCapture(other_->handle(), CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  EXPECT_THROW((void)from_dlpack(given, {.engine = engine_, .stream = other()}), Exception);
  CUgraph captured = nullptr;
  EXPECT_EQ(driver.cuStreamEndCapture(other_->handle(), &captured), CUDA_SUCCESS) << "it goes on";
  driver.cuGraphDestroy(captured);
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceDlpack, testing::Values(TestDevice::emulated, TestDevice::gpu),
                         &runtime::cuda::test_device_name);

}  // namespace
