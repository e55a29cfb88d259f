#include "tessera/nn/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

using namespace tessera;

namespace {

/// How much of `steps` is over once `step` are done, from 0 to 1.
double part(std::int64_t step, std::int64_t steps) {
  return steps <= 0 ? 1 : std::clamp(static_cast<double>(step) / static_cast<double>(steps), 0.0, 1.0);
}

}  // namespace

double tessera::optim::warm_up(double rate, std::int64_t step, std::int64_t steps) {
  return rate * part(step + 1, steps);
}

double tessera::optim::step_decay(double rate, std::int64_t step, std::int64_t every, double factor) {
  return every <= 0 ? rate : rate * std::pow(factor, static_cast<double>(step / every));
}

double tessera::optim::exponential_decay(double rate, std::int64_t step, double factor) {
  return rate * std::pow(factor, static_cast<double>(step));
}

double tessera::optim::cosine_decay(double rate, std::int64_t step, std::int64_t steps, double last) {
  return last + (rate - last) * (1 + std::cos(std::numbers::pi * part(step, steps))) / 2;
}
