// When steps ran on a device that works on while the host goes ahead.
#pragma once

#include <cstdint>
#include <vector>

#include "tessera/base/result.h"
#include "tessera/runtime/executable.h"

namespace tessera::runtime {

/// One thread at a time. Steps run between begin() and end(), one after the other.
class StepClock {
 public:
  virtual ~StepClock() = default;

  [[nodiscard]] virtual Result<void> begin() = 0;
  /// What was launched since begin() was this step. Without end() it counts for nothing.
  [[nodiscard]] virtual Result<void> end(std::uint32_t step) = 0;
  /// Waits until all of them are done, and appends when they ran, on the host's clock.
  [[nodiscard]] virtual Result<void> read(std::vector<TimedStep>& out) = 0;
};

}  // namespace tessera::runtime
