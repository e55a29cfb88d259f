// The order in which launches become nodes of a graph.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/runtime/cuda/bound_launch.h"

namespace tessera::runtime::cuda {

/// Each comes behind those in `after`; of those that could come next the one that the longest way to the end
/// leads through. Drivers start what is ready one by one in the order in which it was added, so what all else
/// waits for must not stand behind what nobody waits for. Graphs with bodies keep the order they are in.
[[nodiscard]] std::vector<std::uint32_t> launch_order(std::span<const BoundLaunch> launches,
                                                      std::span<const std::vector<std::uint32_t>> after);

}  // namespace tessera::runtime::cuda
