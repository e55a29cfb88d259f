// What is found out about a plan for its sizes is found out once: a launch that changes nothing does nothing
// for each step.
#include <gtest/gtest.h>

#include "tessera/runtime/reference/reference_device.h"
#include "tessera/tensor/compiled.h"
#include "tessera/tensor/create.h"
#include "tessera/tensor/ops.h"
#include "tessera/tensor/scope.h"

using namespace tessera;

namespace {

class CountingExecutable final : public runtime::Executable {
 public:
  CountingExecutable(std::unique_ptr<Executable> inner, int& prepared)
      : inner_(std::move(inner)), prepared_(prepared) {}

  Result<void> prepare(std::span<const std::int64_t> sizes, std::span<const op::Layout> inputs) override {
    ++prepared_;
    return inner_->prepare(sizes, inputs);
  }
  [[nodiscard]] const plan::Binding& binding() const override { return inner_->binding(); }
  Result<void> run(const runtime::Launch& launch) override { return inner_->run(launch); }

 private:
  std::unique_ptr<Executable> inner_;
  int& prepared_;
};

/// The reference, which counts how often its plans are prepared.
class CountingDevice final : public runtime::Device {
 public:
  [[nodiscard]] std::string_view name() const override { return "counting"; }
  Result<void> run(const op::CallInfo& call, std::span<const op::Array> inputs,
                   std::span<const op::Array> results) override {
    return reference_.run(call, inputs, results);
  }
  [[nodiscard]] const pattern::Target& target() const override { return reference_.target(); }
  Result<std::unique_ptr<runtime::Executable>> load(
      plan::PlanRef plan, const std::shared_ptr<runtime::MemoryPool>& pool) override {
    auto inner = TESSERA_TRY(reference_.load(std::move(plan), pool));
    return std::unique_ptr<runtime::Executable>(
        std::make_unique<CountingExecutable>(std::move(inner), prepared));
  }

  int prepared = 0;

 private:
  runtime::ReferenceDevice reference_;
};

struct Counted {
  std::shared_ptr<CountingDevice> device = std::make_shared<CountingDevice>();
  std::shared_ptr<Engine> engine = Engine::create({.plans = {.wait = true}, .device = device});

  /// Kernels and views of one call.
  template <class F>
  std::pair<std::uint64_t, std::uint64_t> steps_of(const F& call) {
    const auto before = engine->statistics();
    call();
    const auto after = engine->statistics();
    return {after.kernels - before.kernels, after.views - before.views};
  }
};

}  // namespace

TEST(PreparedPlans, OfScalarsArePreparedOnce) {
  Counted counted;
  const auto f = compile([](const Tensor& x) { return x * x + x; });
  const Tensor x = from_vector<float>({3}, {}, {.engine = counted.engine});
  for (int i = 0; i < 5; ++i) EXPECT_EQ(f(x).item<float>(), 12);
  EXPECT_EQ(counted.device->prepared, 1);
}

TEST(PreparedPlans, ArePreparedForOtherSizes) {
  Counted counted;
  const auto f = compile([](const Tensor& x) { return x + x; });
  const auto call = [&](std::int64_t size) {
    const std::vector<float> ones(static_cast<std::size_t>(size), 1);
    f(from_vector(ones, {size}, {.engine = counted.engine})).eval();
  };
  call(4);
  call(4);
  EXPECT_EQ(counted.device->prepared, 1);
  call(5);
  EXPECT_EQ(counted.device->prepared, 2);
}

TEST(PreparedPlans, CountTheStepsOfEveryLaunch) {
  Counted counted;
  const auto f = compile([](const Tensor& x) { return exp(reshape(x, {.shape = {6}})) + 1.0; });
  const Tensor x = from_vector<float>({0, 0, 0, 0, 0, 0}, {2, 3}, {.engine = counted.engine});
  const auto call = [&] { f(x).eval(); };
  const auto first = counted.steps_of(call);
  EXPECT_GE(first.first, 2U);
  EXPECT_EQ(first.second, 1U);
  EXPECT_EQ(counted.steps_of(call), first);
  EXPECT_EQ(counted.steps_of(call), first);
}
