// All small regions of a fusion group: connected, convex, of a few ops.
//
// Every connected convex set has a node without which it is connected and convex too (a source or a sink that
// is no cut vertex of it). So sets of one size are found by adding a node to those one smaller, and the work
// is proportional to the number of sets.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "tessera/cover/effort.h"
#include "tessera/pattern/convexity.h"
#include "tessera/pattern/fusion_groups.h"

namespace tessera::pattern {

/// No region that is enumerated by size has more ops.
inline constexpr std::uint32_t small_region_limit = 8;

/// Nodes ascending, then `none`.
using SmallRegion = std::array<NodeId, small_region_limit>;

[[nodiscard]] inline std::span<const NodeId> nodes_in(const SmallRegion& region) {
  std::size_t size = 0;
  while (size < region.size() && region[size] != none) ++size;
  return {region.data(), size};
}

/// Used for one group after another; keeps its memory. REQUIRES graph, groups and convexity outlive it.
class SmallRegions {
 public:
  SmallRegions(const Graph& graph, const FusionGroups& groups, Convexity& convexity)
      : graph_(graph), groups_(groups), convexity_(convexity) {}

  /// Finds the regions of up to `largest` ops, by size. The size up to which all were found: `largest`, or
  /// less if there are more than `limit` or the effort was over; then those found so far of the next size
  /// are there, too. REQUIRES largest <= small_region_limit.
  std::uint32_t find(std::uint32_t group, std::uint32_t largest, std::size_t limit, cover::Effort& effort);

  [[nodiscard]] const std::vector<SmallRegion>& regions() const { return regions_; }

 private:
  void extend(const SmallRegion& region);
  void add(const SmallRegion& region, NodeId node);
  bool is_new(const SmallRegion& region);
  void grow_table();

  const Graph& graph_;
  const FusionGroups& groups_;
  Convexity& convexity_;
  std::uint32_t group_ = 0;
  std::vector<SmallRegion> regions_;
  std::vector<SmallRegion> seen_;     ///< convex or not
  std::uint64_t trials_ = 0;          ///< sets that were made out of a region and a node
  std::vector<std::uint32_t> table_;  ///< open addressing over seen_: index + 1, or 0
};

}  // namespace tessera::pattern
