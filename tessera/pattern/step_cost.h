// What a step takes, predicted: the time to begin it, and to move what it reads and writes. What it computes
// is left out: every way to cover a graph computes the same.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/pattern/graph.h"

namespace tessera::pattern {

struct StepCosts {
  double step_ns = 200;   ///< to begin a step
  double byte_ns = 0.05;  ///< to read or write a byte
  /// What a size symbol is like.
  std::int64_t usual_size = 64;
};

/// Asked again and again about steps of one graph: how large its values are is found out once. Not
/// thread-safe. REQUIRES the graph outlives it.
class StepPrices {
 public:
  StepPrices(const StepCosts& costs, const Graph& graph);

  /// Of some nodes as one step, in nanoseconds; nodes ascending.
  [[nodiscard]] double of(std::span<const NodeId> nodes);

 private:
  /// The bytes of those that come from outside and were not counted yet.
  [[nodiscard]] double bytes_read(std::span<const ValueId> values);
  [[nodiscard]] bool is_inside(NodeId node) const { return inside_[node] == call_; }

  StepCosts costs_;
  const Graph& graph_;
  std::vector<double> bytes_;          ///< by value
  std::uint64_t call_ = 0;             ///< of of(), to which the marks belong
  std::vector<std::uint64_t> inside_;  ///< by node: the last call it was inside of
  std::vector<std::uint64_t> read_;    ///< by value: the last call that counted it
};

}  // namespace tessera::pattern
