#include "tessera/cover/search.h"

#include <algorithm>
#include <limits>

#include "tessera/cover/dual.h"
#include "tessera/cover/rest_bound.h"
#include "tessera/cover/search_model.h"
#include "tessera/cover/search_states.h"
#include "tessera/cover/search_view.h"

using namespace tessera::cover;

class Search::Impl {
 public:
  Impl(const Model& model, const Pieces& pieces, const Piece& piece, Answer start, Effort& effort)
      : model_(make_search_model(model, pieces, piece)),
        has_all_tiles_(model_.has_hinges || !piece.has_hinges),
        answer_(std::move(start)),
        prices_(find_prices(model_, model_.fine.of(answer_.cost), effort)),
        rest_bound_(model_, prices_),
        view_(model_),
        child_(view_.packed_size()) {
    answer_.method = Method::search;
    raise_bound(model_.fine.rounded_up(prices_.sum));
  }

  bool widen(std::uint64_t state_limit, Effort& effort);
  [[nodiscard]] const Answer& answer() const { return answer_; }

 private:
  struct Ranked {
    Cost bound = 0;
    std::uint32_t state = 0;
  };
  struct Trace {
    std::uint32_t parent = 0;
    std::uint32_t tile = 0;
  };
  static constexpr std::uint32_t root = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::uint64_t word_limit = std::uint64_t{1} << 27;  ///< of states in one run: 1 GiB
  /// A limit on states is one on time, too: where a state takes a thousand looks at tiles, fewer are
  /// expanded.
  static constexpr std::uint64_t looks_per_state = 150;
  static constexpr std::uint64_t look_work = 6;
  static constexpr Cost none = std::numeric_limits<Cost>::max();

  bool run(std::uint64_t state_limit, Effort& effort);
  void take_bucket(std::uint32_t decided, Effort& effort);
  void keep_best(std::vector<Ranked>& states, std::size_t count);
  [[nodiscard]] std::uint64_t looks() const { return tried_ + rest_bound_.looks(); }
  /// Accounts for the looks since the last call.
  void spend_looks(Effort& effort) {
    effort.spend(look_work * (looks() - counted_));
    counted_ = looks();
  }
  void expand(std::uint32_t decided, Cost excess);
  void offer_child(std::uint32_t decided, const Arrival& arrival);
  void record(const Arrival& last);
  void raise_bound(Cost bound) {
    if (has_all_tiles_) answer_.bound = std::max(answer_.bound, std::min(bound, answer_.cost));
  }
  /// How much excess a state may have and still lead to a better tiling.
  [[nodiscard]] Cost room() const { return model_.fine.of(answer_.cost - 1) - prices_.sum; }

  SearchModel model_;
  bool has_all_tiles_;
  Answer answer_;
  DualBound prices_;
  RestBound rest_bound_;
  SearchView view_;
  StackTable stacks_;
  std::size_t beam_ = 1;
  std::vector<Bucket> buckets_;  ///< by number of positions decided
  std::vector<Trace> trail_;     ///< of the states that were expanded
  std::uint64_t stored_words_ = 0;
  std::uint64_t tried_ = 0;    ///< tiles, in all runs
  std::uint64_t counted_ = 0;  ///< looks that the effort knows of
  Cost least_dropped_ = none;  ///< the least bound of a state that a bucket had no room for
  std::vector<std::uint64_t> child_;
};

bool Search::Impl::widen(std::uint64_t state_limit, Effort& effort) {
  if (answer_.is_optimal() || effort.is_over()) return false;
  const bool is_finished = run(state_limit, effort);
  beam_ *= 8;
  answer_.states += trail_.size();
  buckets_.clear();
  trail_.clear();
  if (!is_finished) return false;
  raise_bound(least_dropped_ == none ? answer_.cost : model_.fine.rounded_up(prices_.sum + least_dropped_));
  return least_dropped_ != none && !answer_.is_optimal();
}

/// False if a limit ended it early.
bool Search::Impl::run(std::uint64_t state_limit, Effort& effort) {
  least_dropped_ = none;
  stored_words_ = 0;
  buckets_.assign(model_.size, {});
  std::ranges::fill(child_, 0);
  buckets_[0].offer(child_, {0, root, 0});
  for (std::uint32_t decided = 0; decided < model_.size; ++decided) {
    const bool is_over =
        answer_.states + trail_.size() > state_limit || looks() / looks_per_state > state_limit;
    if (is_over || stored_words_ > word_limit || effort.is_over()) return false;
    take_bucket(decided, effort);
  }
  return !effort.is_over();
}

/// Ranks the states of a bucket, keeps as many as the beam allows, and expands them.
void Search::Impl::take_bucket(std::uint32_t decided, Effort& effort) {
  Bucket& bucket = buckets_[decided];
  std::vector<Ranked> begun;
  for (std::uint32_t state = 0; state < bucket.size(); ++state)
    if (bucket.arrival(state).excess <= room()) begun.push_back({bucket.arrival(state).excess, state});
  // Looking at the rest of a state takes time: of very many only those that are best so far are worth it.
  keep_best(begun, 8 * beam_);
  std::vector<Ranked> states;
  for (std::size_t i = 0; i < begun.size(); ++i) {
    if (i % 256 == 255) spend_looks(effort);
    if (i % 256 == 255 && effort.is_over()) return;
    const auto [excess, state] = begun[i];
    view_.load(bucket.words(state), stacks_);
    const Cost bound = excess + rest_bound_.at(view_, room() - excess);
    if (bound <= room()) states.push_back({bound, state});
  }
  keep_best(states, beam_);
  for (const Ranked& one : states) {
    spend_looks(effort);
    if (effort.is_over()) return;
    const Arrival& arrival = bucket.arrival(one.state);
    trail_.push_back({arrival.parent, arrival.tile});
    view_.load(bucket.words(one.state), stacks_);
    expand(decided, arrival.excess);
  }
  bucket.clear();
}

void Search::Impl::keep_best(std::vector<Ranked>& states, std::size_t count) {
  if (states.size() <= count) return;
  const auto order = [](const Ranked& a, const Ranked& b) {
    return a.bound != b.bound ? a.bound < b.bound : a.state < b.state;
  };
  const auto cut = states.begin() + static_cast<std::ptrdiff_t>(count);
  std::nth_element(states.begin(), cut, states.end(), order);
  least_dropped_ = std::min(least_dropped_, cut->bound);
  states.erase(cut, states.end());
  std::ranges::sort(states, {}, &Ranked::state);
}

/// Tries every tile over the next position. REQUIRES the state is loaded and last in the trail.
void Search::Impl::expand(std::uint32_t decided, Cost excess) {
  const auto trace = static_cast<std::uint32_t>(trail_.size() - 1);
  const auto tiles = model_.tiles_over(view_.next_position());
  tried_ += tiles.size();
  for (std::uint32_t t : tiles) {
    const SearchTile& tile = model_.tiles[t];
    const Arrival arrival{excess + prices_.excess[t], trace, t};
    if (arrival.excess > room() || !view_.is_free(tile) || !view_.is_allowed(tile)) continue;
    if (decided + tile.size == model_.size)
      record(arrival);
    else
      offer_child(decided + tile.size, arrival);
  }
}

void Search::Impl::offer_child(std::uint32_t decided, const Arrival& arrival) {
  view_.pack_child(arrival.tile, stacks_, child_);
  Bucket& bucket = buckets_[decided];
  const std::uint32_t before = bucket.size();
  bucket.offer(child_, arrival);
  stored_words_ += (bucket.size() - before) * child_.size();
}

/// Takes a complete tiling as the best known. REQUIRES it is better than that.
void Search::Impl::record(const Arrival& last) {
  answer_.cost = model_.fine.rounded_up(prices_.sum + last.excess);
  const auto take = [&](const SearchTile& tile) {
    const auto positions = model_.positions_of(tile);
    answer_.choices[positions[0]] = tile.choice;
    for (std::uint32_t p : positions.subspan(1)) answer_.choices[p] = covered_before;
  };
  take(model_.tiles[last.tile]);
  for (std::uint32_t at = last.parent; trail_[at].parent != root; at = trail_[at].parent)
    take(model_.tiles[trail_[at].tile]);
}

Search::Search(const Model& model, const Pieces& pieces, const Piece& piece, Answer start, Effort& effort)
    : impl_(std::make_unique<Impl>(model, pieces, piece, std::move(start), effort)) {}
Search::Search(Search&&) noexcept = default;
Search& Search::operator=(Search&&) noexcept = default;
Search::~Search() = default;

bool Search::widen(std::uint64_t state_limit, Effort& effort) { return impl_->widen(state_limit, effort); }

const Answer& Search::answer() const { return impl_->answer(); }
