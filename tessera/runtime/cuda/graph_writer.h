// From launches to the nodes of a graph and of the bodies of its conditional nodes.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <vector>

#include "tessera/runtime/cuda/bound_launch.h"

namespace tessera::runtime::cuda {

/// The handles of a graph's conditions, by their numbers.
using Conditions = std::map<std::uint32_t, CUgraphConditionalHandle>;

/// The launch with the handle of the condition that it sets.
[[nodiscard]] BoundLaunch with_handle(BoundLaunch launch, const Conditions& conditions);

/// The error of a launch of a graph with whom it is about: the op or the node it belongs to, and its line.
using LaunchBlame = std::function<Error(std::size_t launch, Error error)>;

struct WrittenGraph {
  std::vector<CUgraphNode> nodes;  ///< by launch
  Conditions conditions;
};

/// Adds the launches to an empty graph, each behind those in `after`, which are of the same graph as it. A
/// conditional is listed before the launches of its bodies. What libraries do is captured from `capturing`.
/// The error of one goes through `blame`; its code is `unsupported` if the driver does not take a conditional
/// node, or something in the body of one, and then alone. REQUIRES that the context is current.
[[nodiscard]] Result<WrittenGraph> write_graph(const Context& context, const Stream& capturing, CUgraph graph,
                                               std::span<const BoundLaunch> launches,
                                               std::span<const std::vector<std::uint32_t>> after,
                                               const LaunchBlame& blame);

}  // namespace tessera::runtime::cuda
