#include "tessera/cover/rest_bound.h"

#include <algorithm>
#include <limits>

using namespace tessera::cover;

RestBound::RestBound(const SearchModel& model, const DualBound& prices)
    : model_(model), prices_(prices), left_(model.tiles.size()), tight_(model.size, 0) {
  for (std::uint32_t p = 0; p < model.size; ++p) {
    tight_begin_.push_back(static_cast<std::uint32_t>(tight_tiles_.size()));
    if (prices.excess[p] == 0) tight_tiles_.push_back(p);
    for (std::uint32_t t = model.start_begin[p]; t < model.start_begin[p + 1]; ++t)
      if (prices.excess[t] == 0) tight_tiles_.push_back(t);
  }
  tight_begin_.push_back(static_cast<std::uint32_t>(tight_tiles_.size()));
}

Cost RestBound::at(const SearchView& view, Cost room) {
  start();
  std::uint32_t seen = 0;
  view.for_each_free([&](std::uint32_t position) {
    looks_ += 1 + tight_begin_[position + 1] - tight_begin_[position];
    for (std::uint32_t i = tight_begin_[position]; i < tight_begin_[position + 1]; ++i)
      if (can_follow(view, tight_tiles_[i])) mark_tight(tight_tiles_[i]);
    // A tile over this position that is free starts here or before, so all of them have been looked at.
    if (tight_[position] != call_) loose_.push_back(position);
    return ++seen < look_ahead;
  });
  Cost bound = 0;
  for (std::uint32_t position : loose_) {
    if (tight_[position] == call_) continue;
    bound += raise(view, position);
    if (bound > room) break;
  }
  return bound;
}

void RestBound::start() {
  loose_.clear();
  if (++call_ != 0) return;
  std::ranges::fill(left_, Left());  // the count has wrapped around
  std::ranges::fill(tight_, 0);
  call_ = 1;
}

Cost RestBound::raise(const SearchView& view, std::uint32_t position) {
  const auto tiles = model_.tiles_over(position);
  looks_ += tiles.size();
  Cost least = std::numeric_limits<Cost>::max();
  for (std::uint32_t tile : tiles) {
    Left& left = left_[tile];
    if (left.call != call_) left = {call_, can_follow(view, tile) ? prices_.excess[tile] : gone};
    if (left.excess != gone) least = std::min(least, left.excess);
  }
  for (std::uint32_t tile : tiles) {
    Cost& left = left_[tile].excess;
    if (left == gone) continue;
    left -= least;
    if (left == 0) mark_tight(tile);
  }
  return least;
}

void RestBound::mark_tight(std::uint32_t tile) {
  for (std::uint32_t position : model_.positions_of(model_.tiles[tile])) tight_[position] = call_;
}
