// The graphs of a plan, for a few sets of addresses. Programs come back to the buffers they used: the weights
// before and after a training step change places with every step. Each set has a graph that holds it, so that
// nothing is patched and no library call is captured again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "tessera/runtime/cuda/graph_twin.h"
#include "tessera/runtime/cuda/resident_graph.h"

namespace tessera::runtime::cuda {

/// What a launch of a plan is given by its caller.
struct LaunchAddresses {
  std::span<std::byte*const> inputs, outputs;
};

struct GraphReplica {
  std::vector<BoundLaunch> launches;  ///< by node: what the graphs do, or are to do
  // What the launches hold.
  std::vector<std::byte*> inputs, outputs;
  std::vector<std::uint64_t> parameters;
  std::vector<std::uint32_t> changed;                  ///< nodes whose launches are not what the graphs do
  std::vector<std::unique_ptr<ResidentGraph>> graphs;  ///< by part
  std::vector<std::unique_ptr<GraphTwin>> twins;       ///< by part; where steps are measured
  bool is_stale = true;                                ///< the graphs are of other launches, or not there
  std::uint64_t last_used = 0;

  [[nodiscard]] bool holds(const LaunchAddresses& addresses) const;
};

/// One thread at a time.
class GraphReplicas {
 public:
  /// Begins anew with these launches. The graphs that were used last stay: they may fit.
  void reset(std::vector<BoundLaunch> launches, std::size_t inputs, std::size_t outputs);

  /// REQUIRES, as what follows, that it was reset.
  [[nodiscard]] GraphReplica& current() { return *replicas_[current_]; }
  [[nodiscard]] const GraphReplica& current() const { return *replicas_[current_]; }

  /// Makes the replica current that holds these addresses. If none does: a new one where they were seen
  /// before and there is room, else the one that was not used for the longest time. It holds other addresses
  /// then.
  void choose(const LaunchAddresses& addresses);

  [[nodiscard]] std::size_t size() const { return replicas_.size(); }

 private:
  [[nodiscard]] bool was_seen(const LaunchAddresses& addresses);
  void use(std::size_t i);

  std::vector<std::unique_ptr<GraphReplica>> replicas_;
  std::size_t current_ = 0;
  std::uint64_t uses_ = 0;
  std::deque<std::uint64_t> seen_;  ///< hashes of sets that came last; a wrong one costs a graph
};

}  // namespace tessera::runtime::cuda
