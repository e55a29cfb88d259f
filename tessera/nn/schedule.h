// Learning rates that change with the step, as plain numbers. Steps count from 0.
#pragma once

#include <cstdint>

namespace tessera::optim {

/// Grows in a straight line from rate / steps to `rate` over the first `steps` steps, and stays.
[[nodiscard]] double warm_up(double rate, std::int64_t step, std::int64_t steps);

/// `rate` times factor for every `every` steps that are over.
[[nodiscard]] double step_decay(double rate, std::int64_t step, std::int64_t every, double factor = 0.1);

/// `rate` times factor to the step.
[[nodiscard]] double exponential_decay(double rate, std::int64_t step, double factor);

/// Falls from `rate` at step 0 to `last` at step `steps` along half a cosine, and stays.
[[nodiscard]] double cosine_decay(double rate, std::int64_t step, std::int64_t steps, double last = 0);

}  // namespace tessera::optim
