// Sorts the steps of one scope by their waits, and says what waits in a circle.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tessera::description {

struct ScopeLink {
  std::uint32_t before = 0;
  std::uint32_t after = 0;
};

struct SortedScope {
  std::vector<std::uint32_t> order;   ///< all nodes; those on or behind a cycle stand last
  std::vector<std::uint32_t> levels;  ///< by node: the longest path to it
  /// Links (by number) that lead around, each list one cycle in the order of its links.
  std::vector<std::vector<std::uint32_t>> cycles;
};

/// Sorts `count` nodes; of those that could come next, the one with the smallest rank does.
[[nodiscard]] SortedScope sort_scope(std::span<const std::uint32_t> ranks, std::span<const ScopeLink> links);

}  // namespace tessera::description
