// Which steps of a plan run side by side on the threads, and which one after the other with all threads
// inside each.
//
// A wave is a set of tasks that do not depend on each other; a task is a chain of steps. Waves follow each
// other. A wave runs side by side where that is predicted to end sooner.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/plan/plan.h"

namespace tessera::runtime::cpu {

using Task = std::vector<plan::StepId>;

struct Wave {
  std::vector<Task> tasks;
  bool is_side_by_side = false;
};

/// What a step takes on one thread.
struct StepTime {
  double nanoseconds = 0;
  bool can_share = false;  ///< it may run beside others
};

/// All steps, in an order in which they can run.
[[nodiscard]] std::vector<Wave> schedule(const plan::Plan& plan, std::span<const StepTime> times,
                                         unsigned threads);

}  // namespace tessera::runtime::cpu
