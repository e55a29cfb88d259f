// Independent parts of a trace. Two ops are in one component if one reads what the other computed, or if both
// have an effect: effects stay in order. Reading the same input does not join them.
#pragma once

#include <span>
#include <vector>

#include "tessera/stream/trace.h"

namespace tessera::stream {

/// Reusable: partitioning again does not allocate once the arrays are large enough.
class Components {
 public:
  /// Near-linear in ops and operands.
  void partition(const Trace& trace);

  /// Numbered in the order of their first ops.
  [[nodiscard]] std::size_t size() const { return first_.empty() ? 0 : first_.size() - 1; }
  /// The ops of a component, ascending.
  [[nodiscard]] std::span<const OpIndex> ops(std::size_t component) const {
    return {ops_.data() + first_[component], ops_.data() + first_[component + 1]};
  }
  [[nodiscard]] std::uint32_t component_of(OpIndex op) const { return component_of_[op]; }

  /// All ops with each component in one piece, in an order in which they can run. The component with the
  /// effects comes last: the others may read what it overwrites, and none of them reads what it makes.
  [[nodiscard]] std::vector<OpIndex> grouped_order(const Trace& trace) const;

 private:
  std::uint32_t find(std::uint32_t op);

  std::vector<std::uint32_t> parent_;        // union-find over ops; a root is the first op of its component
  std::vector<std::uint32_t> component_of_;  // by op
  std::vector<std::uint32_t> first_;         // by component, into ops_; one more for the end
  std::vector<OpIndex> ops_;
};

}  // namespace tessera::stream
