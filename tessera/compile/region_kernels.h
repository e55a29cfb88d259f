// The kernels of regions of one function. Layers of a model repeat, so regions that are alike share a kernel,
// and whether they have any is found out once.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "tessera/ir/function.h"
#include "tessera/kernel/kernel.h"
#include "tessera/pattern/graph.h"

namespace tessera::compiler {

/// Not thread-safe. REQUIRES the graph outlives it.
class RegionKernels {
 public:
  /// The graph of the function that the regions are of.
  explicit RegionKernels(const pattern::Graph& graph) : graph_(graph) {}

  /// The kernel that computes `ops`, the calls at `statements` as a function of what they read from outside;
  /// null if none can, or if it would go over many more points than any of the ops.
  [[nodiscard]] std::shared_ptr<const kernel::Kernel> of(std::span<const std::uint32_t> statements,
                                                         const ir::Function& ops);

 private:
  /// All that a kernel depends on: ops, attributes, types and constants by their numbers in the graph, values
  /// by where in the region they are computed or first read.
  using Key = std::vector<std::uint32_t>;
  class KeyWriter;

  const pattern::Graph& graph_;
  std::map<Key, std::shared_ptr<const kernel::Kernel>> kernels_;
};

}  // namespace tessera::compiler
