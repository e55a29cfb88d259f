#include <gtest/gtest.h>

#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/op/catalogue.h"
#include "tessera/runtime/cuda/emulator/test_devices.h"
#include "tessera/runtime/cuda/graph_twin.h"

using namespace tessera;
using namespace tessera::runtime;
using namespace tessera::runtime::cuda;

namespace {

TimedStep step_from_to(int begin, int end) {
  const TimedStep::Clock::time_point zero;
  return {.begin = zero + std::chrono::microseconds(begin), .end = zero + std::chrono::microseconds(end)};
}

std::vector<std::uint32_t> lanes_of(std::vector<TimedStep> steps) {
  assign_lanes(steps);
  std::vector<std::uint32_t> out;
  for (const TimedStep& step : steps) out.push_back(step.thread);
  return out;
}

/// A graph of copies along a chain of cells: whether each came after the one before is seen in the last.
class CudaTwin : public OnTestDevice {
 protected:
  void SetUp() override {
    OnTestDevice::SetUp();
    if (device_ == nullptr) return;
    current_.emplace(value_or_throw(device_->context()->enter()));
    memory_ = value_or_throw(device_->memory().allocate(bytes));
    twin_.emplace(device_->context(), value_or_throw(Stream::create(device_->context())));
  }
  void TearDown() override {
    twin_.reset();
    if (memory_ != nullptr) device_->memory().free(memory_, bytes);
  }

  [[nodiscard]] std::uint64_t cell(std::size_t i) const { return device_address(memory_) + i * 256; }
  [[nodiscard]] BoundLaunch copy(std::size_t to, std::size_t from) const {
    return {.kind = BoundLaunch::Kind::copy, .values = {cell(to), cell(from)}, .bytes = 256};
  }
  void fill_first(char value) {
    value_or_throw(device_->memory().clear(memory_, bytes));
    const std::vector<char> line(256, value);
    value_or_throw(device_->memory().copy_in(memory_, std::as_bytes(std::span(line))));
  }
  char first_of(std::size_t i) {
    char out = 0;
    value_or_throw(device_->memory().copy_out(memory_ + i * 256, std::as_writable_bytes(std::span(&out, 1))));
    return out;
  }
  /// Errors name the launch.
  Result<void> set(std::span<const BoundLaunch> launches, std::span<const std::vector<std::uint32_t>> after,
                   std::span<const std::uint32_t> steps) {
    return twin_->set(launches, after, steps, [](std::size_t launch, Error error) {
      return std::move(error).note(cat("launch ", launch));
    });
  }
  std::vector<TimedStep> launch() {
    const auto origin = value_or_throw(EventOrigin::create(device_->context(), device_->stream()));
    value_or_throw(twin_->launch(device_->stream()));
    value_or_throw(device_->stream().wait());
    std::vector<TimedStep> out;
    for (const StepEvents& step : twin_->events()) out.push_back(value_or_throw(origin.time_of(step)));
    return out;
  }

  static constexpr std::size_t bytes = 16 * 256;
  std::optional<Current> current_;
  std::byte* memory_ = nullptr;
  std::optional<GraphTwin> twin_;
};

}  // namespace

TEST(TimedLanes, AreAsFewAsOverlap) {
  EXPECT_EQ(lanes_of({}), std::vector<std::uint32_t>{});
  EXPECT_EQ(lanes_of({step_from_to(0, 4), step_from_to(4, 6), step_from_to(6, 9)}),
            (std::vector<std::uint32_t>{0, 0, 0}));
  EXPECT_EQ(lanes_of({step_from_to(5, 6), step_from_to(0, 9), step_from_to(1, 4), step_from_to(2, 3)}),
            (std::vector<std::uint32_t>{0, 1, 2, 1}))
      << "ordered by their beginnings; the lowest lane that is free";
}

TEST_P(CudaTwin, MeasuresStepsAndKeepsTheirOrder) {
  // Step 7 is two launches, step 8 and step 9 wait for its second, a join for both of them, step 10 for that.
  const std::vector<BoundLaunch> launches = {copy(1, 0), copy(2, 1), copy(3, 2), copy(4, 2), {}, copy(5, 4)};
  const std::vector<std::vector<std::uint32_t>> after = {{}, {0}, {1}, {1}, {2, 3}, {4}};
  const std::vector<std::uint32_t> steps = {7, 7, 8, 9, 10, 10};
  ASSERT_TRUE(set(launches, after, steps));
  for (char round = 1; round < 6; ++round) {
    fill_first(round);
    const std::vector<TimedStep> times = launch();
    ASSERT_EQ(first_of(3), round);
    ASSERT_EQ(first_of(5), round);
    ASSERT_EQ(times.size(), 4u) << "a join takes no time";
    for (std::size_t i = 0; i < times.size(); ++i) {
      EXPECT_EQ(times[i].step, 7 + i);
      EXPECT_GE(times[i].end, times[i].begin);
    }
    EXPECT_GT(times[0].end, times[0].begin);
    EXPECT_GE(times[1].begin, times[0].end);
    EXPECT_GE(times[2].begin, times[0].end);
    EXPECT_GE(times[3].begin, std::max(times[1].end, times[2].end));
  }
}

TEST_P(CudaTwin, AnErrorIsAboutTheLaunchOfTheGraph) {
  if (!is_emulated()) GTEST_SKIP() << "drivers differ in what they refuse";
  BoundLaunch nothing = copy(3, 2);
  nothing.bytes = 0;
  const std::vector<std::vector<std::uint32_t>> after = {{}, {0}, {1}};
  const auto made =
      set(std::vector{copy(1, 0), copy(2, 1), nothing}, after, std::vector<std::uint32_t>{4, 4, 5});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().notes().back(), "launch 2") << made.error().to_text();
}

TEST_P(CudaTwin, FollowsItsGraph) {
  const std::vector<std::vector<std::uint32_t>> after = {{}, {0}};
  const std::vector<std::uint32_t> steps = {0, 1};
  ASSERT_TRUE(set(std::vector{copy(1, 0), copy(2, 1)}, after, steps));
  const std::uint64_t made = emulated_state().instantiated;
  ASSERT_TRUE(set(std::vector{copy(3, 0), copy(4, 3)}, after, steps));
  if (is_emulated()) {
    EXPECT_EQ(emulated_state().instantiated, made) << "other addresses are patched";
  }
  fill_first(9);
  EXPECT_EQ(launch().size(), 2u);
  EXPECT_EQ(first_of(4), 9);
  EXPECT_EQ(first_of(2), 0);
  // Fewer launches, and none.
  ASSERT_TRUE(set(std::vector{copy(6, 0)}, std::vector<std::vector<std::uint32_t>>(1),
                  std::vector<std::uint32_t>{4}));
  const auto times = launch();
  ASSERT_EQ(times.size(), 1u);
  EXPECT_EQ(times[0].step, 4u);
  EXPECT_EQ(first_of(6), 9);
}

TEST_P(CudaTwin, CallsOnAStreamAreMeasuredToo) {
  const auto clock = value_or_throw(device_->step_clock());
  ASSERT_NE(clock, nullptr);
  fill_first(3);
  for (std::uint32_t step = 0; step < 3; ++step) {
    ASSERT_TRUE(clock->begin());
    ASSERT_TRUE(queue(*device_->context(), copy(step + 1, step), device_->stream()));
    if (step != 1) {
      ASSERT_TRUE(clock->end(step));
    }
  }
  std::vector<TimedStep> times;
  ASSERT_TRUE(clock->read(times));
  ASSERT_EQ(times.size(), 2u) << "what was not ended is not noted";
  EXPECT_EQ(times[0].step, 0u);
  EXPECT_EQ(times[1].step, 2u);
  EXPECT_GT(times[0].end, times[0].begin);
  EXPECT_GE(times[1].begin, times[0].end);
  EXPECT_LE(times[1].end, TimedStep::Clock::now());
  EXPECT_EQ(first_of(3), 3);
}

INSTANTIATE_TEST_SUITE_P(Devices, CudaTwin, all_test_devices(), test_device_name);
