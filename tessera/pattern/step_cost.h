// What a step takes, predicted: the time to begin it, and to move what it reads and writes. What it computes
// is left out: every way to cover a graph computes the same.
#pragma once

#include <cstdint>
#include <span>

#include "tessera/pattern/graph.h"

namespace tessera::pattern {

struct StepCosts {
  double step_ns = 200;   ///< to begin a step
  double byte_ns = 0.05;  ///< to read or write a byte
  /// What a size symbol is like.
  std::int64_t usual_size = 64;

  /// Of some nodes as one step, in nanoseconds; nodes ascending.
  [[nodiscard]] double of(const Graph& graph, std::span<const NodeId> nodes) const;
};

}  // namespace tessera::pattern
