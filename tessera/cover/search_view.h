// One state of the bounded search, unpacked.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "tessera/cover/search_model.h"

namespace tessera::cover {

/// Stacks of tiles, each known by a number. Number 0 is the empty stack.
class StackTable {
 public:
  std::uint32_t push(std::uint32_t stack, std::uint32_t tile);
  [[nodiscard]] std::uint32_t below(std::uint32_t stack) const { return nodes_[stack].below; }
  [[nodiscard]] std::uint32_t top(std::uint32_t stack) const { return nodes_[stack].tile; }

 private:
  struct Node {
    std::uint32_t below = 0;
    std::uint32_t tile = 0;
  };
  std::vector<Node> nodes_{{0, 0}};
  std::unordered_map<std::uint64_t, std::uint32_t> numbers_;  ///< only looked up
};

/// What is placed and which hinges wait. Packed, a state is one word with `base` and the number of the stack,
/// then the words of a window of the positions: before the window everything is placed, after it everything
/// is free. Without hinges the window begins at the lowest free position and is as long as a tile; a hinge
/// may wait for positions anywhere, so with hinges the window is the whole piece. REQUIRES the model outlives
/// it.
class SearchView {
 public:
  explicit SearchView(const SearchModel& model);

  /// Words of a packed state.
  [[nodiscard]] std::uint32_t packed_size() const { return window_ + 1; }
  void load(std::span<const std::uint64_t> packed, const StackTable& stacks);
  /// Writes the state that follows when `tile` is chosen. REQUIRES is_free and is_allowed.
  void pack_child(std::uint32_t tile, StackTable& stacks, std::span<std::uint64_t> packed) const;

  /// The lowest position that the top hinge waits for, or if none waits the lowest that is free.
  [[nodiscard]] std::uint32_t next_position() const;
  /// Calls `visit(position)` for the free positions of the window, ascending, until it returns false.
  template <class Visit>
  void for_each_free(Visit visit) const;
  /// Whether no position of the tile is decided.
  [[nodiscard]] bool is_free(const SearchTile& tile) const;
  /// Whether the tile, chosen now, would not wait for a hinge that waits for it. REQUIRES it is over
  /// next_position().
  [[nodiscard]] bool is_allowed(const SearchTile& tile) const;
  /// Whether the tile, if free, can still be chosen in this state or a later one.
  [[nodiscard]] bool may_follow(const SearchTile& tile) const;

 private:
  void place(const SearchTile& tile, std::span<std::uint64_t> window) const;
  [[nodiscard]] bool is_ready(const SearchTile& hinge, std::span<const std::uint64_t> window) const;

  const SearchModel& model_;
  std::uint32_t window_ = 1;
  std::uint32_t base_ = 0;  ///< word
  std::uint32_t stack_ = 0;
  std::vector<std::uint64_t> placed_;
  std::vector<std::uint64_t> waiting_;  ///< positions of the hinges on the stack; stale if that is empty
  std::vector<std::uint64_t> decided_;  ///< either
  std::vector<std::uint32_t> hinges_;   ///< on the stack, the top first
};

template <class Visit>
void SearchView::for_each_free(Visit visit) const {
  for (std::uint32_t w = 0; w < window_ && base_ + w < model_.words; ++w)
    for (std::uint64_t free = ~decided_[w]; free != 0; free &= free - 1) {
      const std::uint32_t position = 64 * (base_ + w) + static_cast<std::uint32_t>(__builtin_ctzll(free));
      if (position >= model_.size || !visit(position)) return;
    }
}

inline bool SearchView::is_free(const SearchTile& tile) const {
  const auto parts = model_.parts_of(tile);
  if (parts.front().word < base_) return false;  // all before the window is placed
  for (const BitPart& part : parts)
    if (part.word - base_ < window_ && (decided_[part.word - base_] & part.bits) != 0) return false;
  return true;
}

}  // namespace tessera::cover
