#include "tessera/cover/dual.h"

#include <algorithm>
#include <limits>

#include "tessera/cover/simplex.h"

using namespace tessera::cover;

namespace {

class Prices {
 public:
  explicit Prices(const SearchModel& model) : model_(model), price_(model.size), covered_(model.size) {
    Cost dearest = 0;
    std::uint32_t largest = 1;
    for (const SearchTile& tile : model.tiles) largest = std::max(largest, tile.size);
    for (std::uint32_t i = 0; i < model.size; ++i) {
      dearest = std::max(dearest, model.tiles[i].cost);
      price_[i] = model.tiles[i].cost;
      for (std::uint32_t t : model.tiles_over(i))
        price_[i] = std::min(price_[i], model.tiles[t].cost / model.tiles[t].size);
    }
    lowest_ = -std::min({8 * dearest, (Cost{1} << 59) / largest, (Cost{1} << 59) / model.size});
  }

  DualBound run(Cost known_cost, Effort& effort) {
    if (model_.size <= simplex_limit)
      solve(effort);
    else
      climb(known_cost, effort);
    make_feasible();
    DualBound out;
    for (const SearchTile& tile : model_.tiles) out.excess.push_back(excess(tile));
    raise(out.excess);
    for (Cost price : price_) out.sum += price;
    return out;
  }

 private:
  /// In a piece of this many positions the simplex method takes some milliseconds.
  static constexpr std::uint32_t simplex_limit = 400;

  /// Above the cost of the position alone a price helps nobody; far below zero it only risks an overflow.
  [[nodiscard]] Cost limited(Cost price, std::uint32_t position) const {
    return std::clamp(price, lowest_, model_.tiles[position].cost);
  }
  void solve(Effort& effort) {
    const std::vector<double> prices = simplex_prices(model_, 200 + 20 * std::size_t{model_.size}, effort);
    for (std::uint32_t i = 0; i < model_.size; ++i) {
      const double bounded = std::clamp(prices[i], static_cast<double>(lowest_), 0x1p60);
      price_[i] = limited(static_cast<Cost>(bounded), i);
    }
  }

  [[nodiscard]] Cost excess(const SearchTile& tile) const {
    Cost left = tile.cost;
    for (std::uint32_t i : model_.positions_of(tile)) left -= price_[i];
    return left;
  }

  /// The bound that the prices give when tiles with a negative excess are taken for what they bring; counts
  /// how often each position would be covered.
  Cost relaxed_bound() {
    std::ranges::fill(covered_, 0);
    Cost bound = 0;
    for (Cost price : price_) bound += price;
    for (const SearchTile& tile : model_.tiles) {
      const Cost left = excess(tile);
      if (left >= 0) continue;
      bound += left;
      for (std::uint32_t i : model_.positions_of(tile)) ++covered_[i];
    }
    return bound;
  }

  /// Subgradient steps: positions that are covered too often pay less, those not covered pay more.
  void climb(Cost known_cost, Effort& effort) {
    constexpr int patience = 12;
    constexpr int finest = 12;
    constexpr std::uint64_t position_work = 2;
    const std::size_t rounds = std::clamp<std::size_t>(20'000'000 / model_.positions.size(), 20, 500);
    std::vector<Cost> best_price = price_;
    Cost best = std::numeric_limits<Cost>::min();
    int halvings = 0;
    int since_best = 0;
    for (std::size_t round = 0; round < rounds && halvings < finest && !effort.is_over(); ++round) {
      effort.spend(position_work * model_.positions.size());
      const Cost bound = relaxed_bound();
      if (bound > best) {
        best = bound;
        best_price = price_;
        since_best = 0;
      } else if (++since_best == patience) {
        ++halvings;
        since_best = 0;
        price_ = best_price;
        continue;
      }
      if (!step(known_cost - bound, halvings)) break;
    }
    price_ = std::move(best_price);
  }

  /// False if every position is covered once: the prices are best.
  bool step(Cost distance, int halvings) {
    Cost norm = 0;
    for (std::int32_t count : covered_) norm += Cost{1 - count} * (1 - count);
    if (norm == 0 || distance <= 0) return false;
    const Cost length =
        std::max<Cost>(1, (distance >> halvings) / norm);  // times a count: at most `distance`
    for (std::uint32_t i = 0; i < price_.size(); ++i)
      price_[i] = limited(price_[i] + length * (1 - covered_[i]), i);
    return true;
  }

  /// Lowers prices until no excess is negative.
  void make_feasible() {
    for (const SearchTile& tile : model_.tiles) {
      const Cost left = excess(tile);
      if (left >= 0) continue;
      const Cost share = (-left + tile.size - 1) / tile.size;
      for (std::uint32_t i : model_.positions_of(tile)) price_[i] -= share;
    }
  }
  /// Raises each price as far as the excess of the tiles over it allows.
  void raise(std::vector<Cost>& excess) {
    for (std::uint32_t i = 0; i < price_.size(); ++i) {
      Cost room = std::numeric_limits<Cost>::max();
      for (std::uint32_t t : model_.tiles_over(i)) room = std::min(room, excess[t]);
      price_[i] += room;
      for (std::uint32_t t : model_.tiles_over(i)) excess[t] -= room;
    }
  }

  const SearchModel& model_;
  Cost lowest_ = 0;  ///< no price is below
  std::vector<Cost> price_;
  std::vector<std::int32_t> covered_;
};

}  // namespace

DualBound tessera::cover::find_prices(const SearchModel& model, Cost known_cost, Effort& effort) {
  return Prices(model).run(known_cost, effort);
}
