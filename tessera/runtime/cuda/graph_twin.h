// The twin of a resident graph that notes on the device when each step begins and ends. It does what the
// graph does, in the same order; only what is measured runs it.
#pragma once

#include <vector>

#include "tessera/runtime/cuda/resident_graph.h"
#include "tessera/runtime/cuda/step_events.h"

namespace tessera::runtime::cuda {

/// One thread at a time. REQUIRES, for all functions, that the context is current.
class GraphTwin {
 public:
  GraphTwin(ContextRef context, const std::shared_ptr<const Stream>& capturing)
      : context_(context), graph_(std::move(context), capturing) {}

  /// Makes it do these launches, each behind those in `after`. Neighbours of one step, by `steps`, are
  /// measured as one; launches that only join others are not measured. The error of a launch goes through
  /// `blame`.
  [[nodiscard]] Result<void> set(std::span<const BoundLaunch> launches,
                                 std::span<const std::vector<std::uint32_t>> after,
                                 std::span<const std::uint32_t> steps, const LaunchBlame& blame);

  /// Queues it. REQUIRES that it is set.
  [[nodiscard]] Result<void> launch(const Stream& stream) const { return graph_.launch(stream); }

  /// What the last launch recorded.
  [[nodiscard]] const std::vector<StepEvents>& events() const { return events_; }

 private:
  ContextRef context_;
  std::vector<StepEvents> events_;  ///< stay: nodes of the graph hold them
  ResidentGraph graph_;
};

}  // namespace tessera::runtime::cuda
