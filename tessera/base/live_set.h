// Which of many live ranges, of those that were added, are there at some time between two steps.
#pragma once

#include <algorithm>
#include <bit>
#include <numeric>
#include <span>
#include <vector>

#include "tessera/base/memory_layout.h"

namespace tessera {

/// A tree over the ranges by their first step that knows how long those below a node last.
class LiveSet {
 public:
  explicit LiveSet(std::span<const LiveRange> ranges)
      : ranges_(ranges), order_(ranges.size()), place_(ranges.size()) {
    std::iota(order_.begin(), order_.end(), 0);
    std::stable_sort(order_.begin(), order_.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return ranges_[a].first < ranges_[b].first; });
    for (std::uint32_t i = 0; i < order_.size(); ++i) place_[order_[i]] = i;
    leaves_ = std::bit_ceil(std::max<std::size_t>(1, order_.size()));
    clear();
  }

  void clear() { ends_.assign(2 * leaves_, 0); }

  void add(std::uint32_t range) {
    const std::uint32_t end = ranges_[range].last() + 1;
    for (std::size_t at = leaves_ + place_[range]; at > 0; at /= 2) ends_[at] = std::max(ends_[at], end);
  }

  /// Calls f(number) for each that was added and lives at a step of `range`.
  template <class F>
  void for_each_beside(const LiveRange& range, F&& f) {
    stack_.assign(1, {1, 0, leaves_});
    while (!stack_.empty()) {
      const Part part = stack_.back();
      stack_.pop_back();
      if (ends_[part.node] <= range.first || part.begin >= order_.size()) continue;
      if (ranges_[order_[part.begin]].first > range.last()) continue;
      if (part.size == 1) {
        f(order_[part.begin]);
        continue;
      }
      const std::size_t half = part.size / 2;
      stack_.push_back({2 * part.node + 1, part.begin + half, half});
      stack_.push_back({2 * part.node, part.begin, half});
    }
  }

 private:
  struct Part {
    std::size_t node, begin, size;
  };

  std::span<const LiveRange> ranges_;
  std::vector<std::uint32_t> order_;  ///< by first step
  std::vector<std::uint32_t> place_;  ///< by range: in order_
  std::size_t leaves_ = 1;
  std::vector<std::uint32_t> ends_;  ///< by node: one more than the latest step below; 0: none was added
  std::vector<Part> stack_;
};

}  // namespace tessera
