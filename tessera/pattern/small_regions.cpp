#include "tessera/pattern/small_regions.h"

#include <algorithm>

using namespace tessera;
using namespace tessera::pattern;

namespace {

/// Regions that are extended between two questions whether the effort is over; what it takes to try whether a
/// set is new, and a look of the question whether it is convex.
constexpr std::size_t regions_between_questions = 64;
constexpr std::uint64_t trial_work = 45;
constexpr std::uint64_t region_look_work = 4;

std::uint64_t region_hash(const SmallRegion& region) {
  std::uint64_t hash = 0;
  for (NodeId node : region) {
    if (node == none) break;
    hash = (hash ^ node) * 0x9e3779b97f4a7c15U;
    hash ^= hash >> 29;
  }
  return hash;
}

}  // namespace

std::uint32_t SmallRegions::find(std::uint32_t group, std::uint32_t largest, std::size_t limit,
                                 cover::Effort& effort) {
  group_ = group;
  regions_.clear();
  seen_.clear();
  table_.assign(64, 0);
  for (NodeId node : groups_.groups[group]) {
    SmallRegion region;
    region.fill(none);
    region[0] = node;
    regions_.push_back(region);
  }
  std::size_t begin = 0;
  for (std::uint32_t size = 1; size < largest; ++size) {
    const std::size_t end = regions_.size();
    for (std::size_t i = begin; i < end; ++i) {
      if (regions_.size() > limit || (i % regions_between_questions == 0 && effort.is_over())) return size;
      const std::uint64_t trials = trials_;
      const std::uint64_t looks = convexity_.looks();
      extend(SmallRegion(regions_[i]));
      effort.spend(trial_work * (trials_ - trials) + region_look_work * (convexity_.looks() - looks));
    }
    begin = end;
  }
  return largest;
}

void SmallRegions::extend(const SmallRegion& region) {
  for (NodeId node : nodes_in(region))
    for (const auto around : {graph_.predecessors(node), graph_.successors(node)})
      for (NodeId other : around)
        if (groups_.group_of[other] == group_) add(region, other);
}

/// Adds `node` to the region, if the result is new and convex.
void SmallRegions::add(const SmallRegion& region, NodeId node) {
  const auto nodes = nodes_in(region);
  const auto place = static_cast<std::size_t>(std::ranges::lower_bound(nodes, node) - nodes.begin());
  if (place < nodes.size() && nodes[place] == node) return;
  ++trials_;
  SmallRegion larger = region;
  for (std::size_t i = nodes.size(); i > place; --i) larger[i] = larger[i - 1];
  larger[place] = node;
  if (is_new(larger) && convexity_.is_convex(nodes_in(larger))) regions_.push_back(larger);
}

bool SmallRegions::is_new(const SmallRegion& region) {
  if (2 * seen_.size() >= table_.size()) grow_table();
  const std::size_t mask = table_.size() - 1;
  std::size_t at = region_hash(region) & mask;
  for (; table_[at] != 0; at = (at + 1) & mask)
    if (seen_[table_[at] - 1] == region) return false;
  seen_.push_back(region);
  table_[at] = static_cast<std::uint32_t>(seen_.size());
  return true;
}

void SmallRegions::grow_table() {
  table_.assign(2 * table_.size(), 0);
  const std::size_t mask = table_.size() - 1;
  for (std::uint32_t i = 0; i < seen_.size(); ++i) {
    std::size_t at = region_hash(seen_[i]) & mask;
    while (table_[at] != 0) at = (at + 1) & mask;
    table_[at] = i + 1;
  }
}
