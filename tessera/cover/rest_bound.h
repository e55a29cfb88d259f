// What the free positions of a state cost at least above their prices.
//
// In a state some tiles can no longer be chosen. A position over which only tiles with an excess are left
// must pay more than its price: the least of these excesses. Raising its price by that leaves so much less
// excess on each tile over it, and the next position is looked at.
#pragma once

#include <cstdint>
#include <vector>

#include "tessera/cover/dual.h"
#include "tessera/cover/search_view.h"

namespace tessera::cover {

/// REQUIRES model and prices outlive it.
class RestBound {
 public:
  RestBound(const SearchModel& model, const DualBound& prices);

  /// The bound, fine. Once it exceeds `room` it is not raised further.
  [[nodiscard]] Cost at(const SearchView& view, Cost room);
  /// How often it has looked at a tile so far.
  [[nodiscard]] std::uint64_t looks() const { return looks_; }

 private:
  /// Free positions that are looked at: in a large piece those further on are much the same in all states.
  static constexpr std::uint32_t look_ahead = 128;
  static constexpr Cost gone = -1;

  struct Left {
    std::uint32_t call = 0;  ///< of at(), to which `excess` belongs
    Cost excess = 0;         ///< that no price has used yet, or `gone`
  };

  void start();
  [[nodiscard]] Cost raise(const SearchView& view, std::uint32_t position);
  void mark_tight(std::uint32_t tile);
  [[nodiscard]] bool can_follow(const SearchView& view, std::uint32_t tile) const {
    return view.is_free(model_.tiles[tile]) && view.may_follow(model_.tiles[tile]);
  }

  const SearchModel& model_;
  const DualBound& prices_;
  std::vector<std::uint32_t> tight_tiles_;  ///< those without an excess, by first position
  std::vector<std::uint32_t> tight_begin_;  ///< where those of position p begin
  std::uint64_t looks_ = 0;
  std::uint32_t call_ = 0;
  std::vector<Left> left_;            ///< by tile
  std::vector<std::uint32_t> tight_;  ///< by position: the last call that found a tile without excess over it
  std::vector<std::uint32_t> loose_;  ///< free positions
};

}  // namespace tessera::cover
