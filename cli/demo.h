// What `tessera demo` can show.
#pragma once

#include "cli/command.h"
#include "cli/digit_training.h"

namespace tessera::cli {

enum class Output : std::uint8_t { text, json };

/// Trains a classifier of handwritten digits. Ctrl-C stops it and leaves a checkpoint.
[[nodiscard]] Result<Answer> train_digits(const TrainingOptions& options, Output output);

/// A function of the IR, and what is known about it.
[[nodiscard]] Result<Answer> show_ir();

}  // namespace tessera::cli
