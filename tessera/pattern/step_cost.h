// What a step takes, predicted: the time to begin it, to move what it reads and writes, and to compute. A
// processor computes while memory is on its way, so the longer of the two counts, and a part of the shorter.
// Every way to cover a graph computes the same; but what a product hides is not what a loop hides.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/pattern/graph.h"

namespace tessera::pattern {

struct StepCosts {
  double step_ns = 200;        ///< to begin a step
  double byte_ns = 0.05;       ///< to read or write a byte
  double operation_ns = 0.01;  ///< an operation (Graph::operations)
};

/// A size in numbers: what is not known is taken to be 64.
[[nodiscard]] std::int64_t usual_size_of(const ir::Dim& size);

/// What a step takes, in nanoseconds.
struct StepPrice {
  double begin = 0, moving = 0, computing = 0;

  [[nodiscard]] double total() const;
};

/// Asked again and again about steps of one graph: how large its values are is found out once. Not
/// thread-safe. REQUIRES the graph outlives it.
class StepPrices {
 public:
  StepPrices(const StepCosts& costs, const Graph& graph);

  /// Of some nodes as one step; nodes ascending.
  [[nodiscard]] StepPrice parts_of(std::span<const NodeId> nodes);
  [[nodiscard]] double of(std::span<const NodeId> nodes) { return parts_of(nodes).total(); }

 private:
  /// The bytes of those that come from outside and were not counted yet.
  [[nodiscard]] double bytes_read(std::span<const ValueId> values);
  [[nodiscard]] bool is_inside(NodeId node) const { return inside_[node] == call_; }

  StepCosts costs_;
  const Graph& graph_;
  std::vector<double> bytes_;          ///< by value
  std::uint64_t call_ = 0;             ///< of parts_of(), to which the marks belong
  std::vector<std::uint64_t> inside_;  ///< by node: the last one it was inside of
  std::vector<std::uint64_t> read_;    ///< by value: the last one that counted it
};

}  // namespace tessera::pattern
