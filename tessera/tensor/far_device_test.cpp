// A device whose memory the host cannot touch: the reference behind addresses that are not there. All tests
// of this room also run on it (TESSERA_DEVICE=far), so that whoever reads device memory directly crashes
// here.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <set>

#include "tessera/base/text.h"
#include "tessera/engine/devices.h"
#include "tessera/engine/engine.h"
#include "tessera/runtime/reference/reference_device.h"
#include "tessera/tensor/create.h"
#include "tessera/tensor/ops.h"
#include "tessera/tensor/region.h"
#include "tessera/tensor/saved_plan.h"

using namespace tessera;

namespace {

/// No address of a program has this bit.
constexpr std::uintptr_t far_bit = std::uintptr_t{1} << 60;

std::byte* to_far(std::byte* near) {
  return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(near) | far_bit);
}

std::byte* to_near(const std::byte* far) {
  const auto address = reinterpret_cast<std::uintptr_t>(far);
  if (far != nullptr && (address & far_bit) == 0) {
    ADD_FAILURE() << "an address of the host was given to the far device";
    std::abort();
  }
  return reinterpret_cast<std::byte*>(address & ~far_bit);
}

class FarMemory final : public runtime::MemorySpace {
 public:
  ~FarMemory() override { EXPECT_TRUE(taken_.empty()) << "memory was not given back"; }

  Result<std::byte*> allocate(std::size_t bytes) override {
    auto* memory = static_cast<std::byte*>(std::malloc(bytes));
    if (memory == nullptr) return Error(ErrorCode::memory, cat("no far memory for ", bytes, " bytes"));
    std::memset(memory, 0xee, bytes);
    const std::lock_guard lock(mutex_);
    taken_.insert(memory);
    return to_far(memory);
  }
  void free(std::byte* memory, std::size_t) noexcept override {
    const std::lock_guard lock(mutex_);
    taken_.erase(to_near(memory));
    std::free(to_near(memory));
  }
  Result<void> copy_in(std::byte* to, std::span<const std::byte> from) override {
    ++copies;
    std::memcpy(to_near(to), from.data(), from.size());
    return {};
  }
  Result<void> copy_out(const std::byte* from, std::span<std::byte> to) override {
    ++copies;
    std::memcpy(to.data(), to_near(from), to.size());
    return {};
  }
  Result<void> clear(std::byte* at, std::size_t bytes) override {
    std::memset(to_near(at), 0, bytes);
    return {};
  }

  static inline std::atomic<int> copies{0};  ///< between the host and far memory

 private:
  std::mutex mutex_;
  std::set<std::byte*> taken_;  ///< leak checkers do not see what far addresses lead to
};

std::vector<std::byte*> near_ones(std::span<std::byte* const> far) {
  std::vector<std::byte*> out;
  for (std::byte* address : far) out.push_back(to_near(address));
  return out;
}

class FarExecutable final : public runtime::Executable {
 public:
  explicit FarExecutable(std::unique_ptr<Executable> near) : near_(std::move(near)) {}

  Result<void> prepare(std::span<const std::int64_t> sizes, std::span<const op::Layout> inputs) override {
    return near_->prepare(sizes, inputs);
  }
  [[nodiscard]] const plan::Binding& binding() const override { return near_->binding(); }
  Result<void> run(const runtime::Launch& launch) override {
    const auto inputs = near_ones(launch.inputs), outputs = near_ones(launch.outputs);
    return near_->run(
        {.inputs = inputs, .parameters = launch.parameters, .outputs = outputs, .times = launch.times});
  }

 private:
  std::unique_ptr<Executable> near_;
};

class FarDevice final : public runtime::Device {
 public:
  [[nodiscard]] std::string_view name() const override { return "far"; }
  std::shared_ptr<runtime::MemorySpace> memory_space() override { return memory_; }
  Result<void> run(const op::CallInfo& call, std::span<const op::Array> inputs,
                   std::span<const op::Array> results) override {
    return reference_.run(call, near_arrays(inputs), near_arrays(results));
  }
  [[nodiscard]] const pattern::Target& target() const override { return reference_.target(); }
  Result<std::unique_ptr<runtime::Executable>> load(plan::PlanRef plan,
                                                    const std::shared_ptr<runtime::MemoryPool>&) override {
    auto near = TESSERA_TRY(reference_.load(std::move(plan), runtime::MemoryPool::create()));
    return std::unique_ptr<runtime::Executable>(std::make_unique<FarExecutable>(std::move(near)));
  }

 private:
  static std::vector<op::Array> near_arrays(std::span<const op::Array> arrays) {
    std::vector<op::Array> out(arrays.begin(), arrays.end());
    for (op::Array& array : out) array.data = to_near(array.data);
    return out;
  }

  runtime::ReferenceDevice reference_;
  std::shared_ptr<FarMemory> memory_ = std::make_shared<FarMemory>();
};

/// Before any test asks for the default engine.
const bool is_registered = static_cast<bool>(engine::register_device(std::make_shared<FarDevice>()));

CreateOptions on_far() {
  engine::EngineOptions options;
  options.device = value_or_throw(engine::find_device("far"));
  return {.engine = engine::Engine::create(std::move(options))};
}

TEST(FarMemoryTest, is_known_by_its_name) {
  ASSERT_TRUE(is_registered);
  EXPECT_FALSE(engine::register_device(std::make_shared<FarDevice>()));
  EXPECT_NE(join(engine::device_names(), " ").find("far"), std::string::npos);
}

TEST(FarMemoryTest, elements_are_read_through_copies) {
  const Tensor x = from_vector<float>({1, 2, 3, 4, 5, 6}, {2, 3}, on_far());
  const Tensor y = transpose(x * 2.0 + 1.0);
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{3, 9, 5, 11, 7, 13}));
  EXPECT_EQ(y.item<float>({2, 1}), 13);
  EXPECT_EQ(flip(x, {.axes = {1}}).to_vector<float>(), (std::vector<float>{3, 2, 1, 6, 5, 4}));
}

TEST(FarMemoryTest, memory_of_the_host_is_copied_and_given_back_at_once) {
  std::vector<float> memory{1, 2, 3};
  bool is_released = false;
  const Tensor x = from_memory(
      memory.data(), {3}, [&] { is_released = true; }, on_far());
  EXPECT_TRUE(is_released);
  memory[0] = 9;
  EXPECT_EQ((x + x).to_vector<float>(), (std::vector<float>{2, 4, 6}));
}

TEST(FarMemoryTest, plans_see_the_same_memory) {
  const CreateOptions far = on_far();
  Tensor x = from_vector<float>({1, 2}, {2}, far);
  for (int i = 0; i < 20; ++i) {
    x = x * 0.5 + 1.0;
    x.eval();
    far.engine->wait_for_plans();
  }
  EXPECT_NEAR(x.item<float>({0}), 2, 1e-4);
  EXPECT_GT(far.engine->statistics().planned(), 0u);
}

TEST(FarMemoryTest, a_plan_from_a_file_reads_and_leaves_its_values_on_the_device) {
  const CreateOptions far = on_far();
  const Tensor x = from_vector<float>({1, -2}, {2}, far), w = from_vector<float>({3, 4}, {2}, far);
  const std::string path = testing::TempDir() + cat("far_", getpid(), ".plan");
  save_plan(path, compile([](const Tensor& a, const Tensor& b) { return relu(a * b) + 1.0; }), x, w);
  const SavedPlan plan = load_plan(path, {.engine = far.engine});
  std::filesystem::remove(path);
  Tensor y = x;
  const int before = FarMemory::copies;
  for (int i = 0; i < 3; ++i) y = plan({y, w})[0];
  EXPECT_EQ(FarMemory::copies, before);
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{40, 21}));
}

TEST(FarMemoryTest, a_region_that_is_not_planned_comes_back_to_the_device) {
  const Tensor x = from_vector<float>({3}, {1}, on_far());
  const Tensor y = cond(
      reshape(x, {}) > 1.0, [&] { return x * 2.0; }, [&] { return x; });
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{6}));
}

}  // namespace
