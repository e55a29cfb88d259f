// What a batch of the demo's training takes, streamed and compiled.
#pragma once

#include "cli/digit_training.h"

namespace tessera::cli {

/// Medians, in milliseconds.
struct BatchTimes {
  double streamed = 0;  ///< op by op
  double compiled = 0;  ///< as a plan
};

/// Trains copies of the weights with one batch again and again: on an engine without plans and on one with
/// them, by turns.
[[nodiscard]] BatchTimes time_batches(const DigitTraining& training);

}  // namespace tessera::cli
