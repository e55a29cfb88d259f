#include "cli/digit_timing.h"

#include <algorithm>
#include <chrono>

#include "tessera/engine/devices.h"
#include "tessera/tensor/scope.h"

using namespace tessera;
using namespace tessera::cli;

namespace {

constexpr int rounds_before = 12, rounds = 40;

Tensor copy_on(const Tensor& tensor, const std::shared_ptr<Engine>& engine) {
  if (tensor.dtype() == Dtype::i64)
    return from_vector(tensor.to_vector<std::int64_t>(), tensor.shape(), {.engine = engine});
  return from_vector(tensor.to_vector<float>(), tensor.shape(), {.engine = engine});
}

/// A training on an engine of its own.
class Copy {
 public:
  Copy(const DigitTraining& training, engine::PlanOptions plans)
      : engine_(Engine::create({.plans = plans, .device = engine::default_device()})) {
    for (const auto& [name, value] : training.parameters())
      state_.parameters.emplace(name, copy_on(value, engine_));
    const Digits batch = training.first_batch();
    batch_ = {copy_on(batch.pixels, engine_), copy_on(batch.labels, engine_)};
  }

  /// Milliseconds of a step.
  double step() {
    const auto begin = std::chrono::steady_clock::now();
    train_with(batch_, state_, rate);
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  }

 private:
  static constexpr double rate = 1e-3;

  std::shared_ptr<Engine> engine_;
  nn::TrainingState state_;
  Digits batch_;
};

double median(std::vector<double> times) {
  std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
  return times[rounds / 2];
}

}  // namespace

BatchTimes tessera::cli::time_batches(const DigitTraining& training) {
  Copy streamed(training, {.enabled = false}), compiled(training, {.wait = true});
  for (int i = 0; i < rounds_before; ++i) streamed.step(), compiled.step();
  std::vector<double> of_streamed, of_compiled;
  for (int i = 0; i < rounds; ++i) {
    of_streamed.push_back(streamed.step());
    of_compiled.push_back(compiled.step());
  }
  return {median(std::move(of_streamed)), median(std::move(of_compiled))};
}
