// From steps with their launches to the list that a graph is written from: who waits for whom, and the bodies
// of regions as graphs in conditional nodes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/runtime/cuda/bound_launch.h"
#include "tessera/runtime/step_graph.h"

namespace tessera::runtime::cuda {

/// Regions in regions beyond this are not held.
inline constexpr std::uint32_t deepest_regions = 16;

/// A step and what it launches, one behind another. Of a region: the kernel that decides first, and of a loop
/// also the one that decides at the end of a turn.
struct StepParts {
  const GraphStep* step = nullptr;
  std::span<const BoundLaunch> launches;
};

struct StepLayout {
  std::vector<BoundLaunch> launches;
  std::vector<std::vector<std::uint32_t>> after;   ///< by launch
  std::vector<std::uint32_t> owner;                ///< by launch: its step
  std::vector<std::uint32_t> outermost;            ///< by launch: the step of the graph itself that it is in
  std::vector<std::vector<std::uint32_t>> places;  ///< by step: where its launches are
};

/// Fails with code `unsupported` if regions nest too deep.
[[nodiscard]] Result<StepLayout> lay_out(std::span<const StepParts> steps);

}  // namespace tessera::runtime::cuda
