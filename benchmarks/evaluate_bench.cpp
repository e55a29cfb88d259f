// What an evaluation costs besides its kernels: 500 ops are recorded again and again and run as a plan on a
// device that computes nothing.
#include <benchmark/benchmark.h>

#include <chrono>

#include "tessera/runtime/reference/reference_device.h"
#include "tessera/tensor/create.h"
#include "tessera/tensor/ops.h"
#include "tessera/tensor/scope.h"

using namespace tessera;
using Clock = std::chrono::steady_clock;

namespace {

/// Binds a plan and runs nothing.
class IdleExecutable final : public runtime::Executable {
 public:
  explicit IdleExecutable(plan::PlanRef plan) : plan_(std::move(plan)) {}
  Result<void> prepare(std::span<const std::int64_t> sizes, std::span<const op::Layout> inputs) override {
    binding_ = TESSERA_TRY(plan::bind(*plan_, sizes, inputs));
    return {};
  }
  [[nodiscard]] const plan::Binding& binding() const override { return binding_; }
  Result<void> run(const runtime::Launch&) override { return {}; }

 private:
  plan::PlanRef plan_;
  plan::Binding binding_;
};

class IdleDevice final : public runtime::Device {
 public:
  [[nodiscard]] std::string_view name() const override { return "idle"; }
  Result<void> run(const op::CallInfo& call, std::span<const op::Array> inputs,
                   std::span<const op::Array> results) override {
    return reference_.run(call, inputs, results);
  }
  [[nodiscard]] const pattern::Target& target() const override { return reference_.target(); }
  Result<std::unique_ptr<runtime::Executable>> load(plan::PlanRef plan,
                                                    const std::shared_ptr<runtime::MemoryPool>&) override {
    return std::unique_ptr<runtime::Executable>(std::make_unique<IdleExecutable>(std::move(plan)));
  }

 private:
  runtime::ReferenceDevice reference_;
};

struct Network {
  std::shared_ptr<Engine> engine =
      Engine::create({.plans = {.wait = true}, .device = std::make_shared<IdleDevice>()});
  Tensor x = ones({4, 4}, {.engine = engine}), w = ones({4, 4}, {.engine = engine}),
         b = ones({4}, {.engine = engine});

  Network() { eval({x, w, b}); }
  /// 500 ops.
  [[nodiscard]] Tensor record() const {
    Tensor h = x;
    for (int layer = 0; layer < 100; ++layer) h = relu(matmul(h, w) + b) * 0.5F + x;
    return h;
  }
};

double seconds_since(Clock::time_point began) {
  return std::chrono::duration<double>(Clock::now() - began).count();
}

void evaluate_500(benchmark::State& state) {
  const Network network;
  for (int i = 0; i < 10; ++i) eval(network.record());
  for (auto _ : state) {
    const Tensor y = network.record();
    const auto began = Clock::now();
    eval(y);
    state.SetIterationTime(seconds_since(began));
  }
  state.counters["plans"] = static_cast<double>(network.engine->statistics().plans);
}

/// From the first call to the last free.
void record_evaluate_free_500(benchmark::State& state) {
  const Network network;
  for (int i = 0; i < 10; ++i) eval(network.record());
  for (auto _ : state) eval(network.record());
  state.counters["plans"] = static_cast<double>(network.engine->statistics().plans);
}

void record_free_500(benchmark::State& state) {
  const Network network;
  for (auto _ : state) benchmark::DoNotOptimize(network.record());
}

}  // namespace

BENCHMARK(evaluate_500)->UseManualTime()->Unit(benchmark::kMicrosecond);
BENCHMARK(record_evaluate_free_500)->Unit(benchmark::kMicrosecond);
BENCHMARK(record_free_500)->Unit(benchmark::kMicrosecond);
