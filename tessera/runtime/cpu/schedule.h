// Which steps of a plan run side by side on the threads, and which one after the other with all threads
// inside each.
//
// A wave is a set of tasks that do not depend on each other; a task is a chain of steps. Waves follow each
// other. A wave runs side by side where that is predicted to end sooner.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/base/memory_layout.h"
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

/// Waking a thread and waiting for it.
inline constexpr double join_ns = 1500;
/// Work is not shared out perfectly.
inline constexpr double share_efficiency = 0.9;
/// What a step takes that threads share if it is long enough.
[[nodiscard]] double shared_ns(double alone, double threads);

/// All steps, in an order in which they can run.
[[nodiscard]] std::vector<Wave> schedule(const plan::Plan& plan, std::span<const StepTime> times,
                                         unsigned threads);

/// Whether any of them runs side by side.
[[nodiscard]] bool has_side_by_side(std::span<const Wave> waves);

/// How much of the work they run side by side, between 0 and 1.
[[nodiscard]] double part_side_by_side(std::span<const Wave> waves, std::span<const StepTime> times);

/// The same with no more tasks at once than there are threads: what one wave holds, the next may use.
[[nodiscard]] std::vector<Wave> narrowed(std::vector<Wave> waves, unsigned threads);

/// Where values lie whose steps run in these waves. A place is used again by a later wave, or by a later step
/// of the same task. REQUIRES the waves have all steps that ranges name.
[[nodiscard]] MemoryLayout lay_out(std::span<const LiveRange> ranges, std::span<const Wave> waves);

}  // namespace tessera::runtime::cpu
