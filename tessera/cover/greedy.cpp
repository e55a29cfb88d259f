#include "tessera/cover/greedy.h"

#include <algorithm>
#include <numeric>
#include <tuple>

using namespace tessera::cover;

namespace {

class Greedy {
 public:
  Greedy(const Model& model, const Pieces& pieces, const Piece& piece)
      : model_(model), pieces_(pieces), positions_(pieces.positions_of(piece)) {}

  Answer run() {
    answer_.method = Method::greedy;
    answer_.choices.assign(positions_.size(), 0);
    for (std::uint32_t i = 0; i < positions_.size(); ++i)
      if (answer_.choices[i] != covered_before) choose(i);
    answer_.bound = least_shares();
    return std::move(answer_);
  }

 private:
  void choose(std::uint32_t i) {
    const std::uint32_t position = positions_[i];
    const auto tiles = model_.tiles_at(position);
    Cost best_saving = 0;
    for (std::uint32_t k = 0; k < tiles.size(); ++k) {
      if (tiles[k].is_hinge || !is_free(tiles[k])) continue;
      const Cost saving = cost_alone(tiles[k]) - tiles[k].cost;
      if (saving <= best_saving) continue;
      best_saving = saving;
      answer_.choices[i] = k + 1;
    }
    if (answer_.choices[i] == 0) {
      answer_.cost += model_.singles[position].cost;
      return;
    }
    const Tile& tile = tiles[answer_.choices[i] - 1];
    answer_.cost += tile.cost;
    for (std::uint32_t p : model_.positions_of(tile).subspan(1))
      answer_.choices[pieces_.local_index[p]] = covered_before;
  }
  [[nodiscard]] bool is_free(const Tile& tile) const {
    return std::ranges::none_of(model_.positions_of(tile), [&](std::uint32_t p) {
      return answer_.choices[pieces_.local_index[p]] == covered_before;
    });
  }
  [[nodiscard]] Cost cost_alone(const Tile& tile) const {
    Cost sum = 0;
    for (std::uint32_t p : model_.positions_of(tile)) sum += model_.singles[p].cost;
    return sum;
  }
  [[nodiscard]] Cost least_shares() const {
    Cost total = 0;
    for (std::uint32_t p : positions_) total += model_.singles[p].cost;
    const FineCosts fine(total);
    std::vector<Cost> share;
    for (std::uint32_t p : positions_) share.push_back(fine.of(model_.singles[p].cost));
    for (std::uint32_t p : positions_)
      for (const Tile& tile : model_.tiles_at(p))
        for (std::uint32_t q : model_.positions_of(tile)) {
          Cost& at = share[pieces_.local_index[q]];
          at = std::min(at, fine.of(tile.cost) / tile.size);
        }
    return fine.rounded_up(std::accumulate(share.begin(), share.end(), Cost{0}));
  }

  const Model& model_;
  const Pieces& pieces_;
  std::span<const std::uint32_t> positions_;
  Answer answer_;
};

/// Takes tiles in a given order, hinges too, each if it is free and closes no cycle with those before it.
class Filling {
 public:
  Filling(const Model& model, const Pieces& pieces, const Piece& piece)
      : model_(model),
        pieces_(pieces),
        positions_(pieces.positions_of(piece)),
        piece_(pieces.piece_of[positions_[0]]),
        tile_of_(positions_.size(), no_tile),
        seen_(positions_.size(), 0) {}

  Answer run(std::span<const std::uint32_t> tiles) {
    for (const std::uint32_t t : tiles) {
      if (steps_ > step_limit) break;
      if (is_free(model_.tiles[t])) take(t);
    }
    Answer answer{.method = Method::greedy};
    answer.choices.assign(positions_.size(), 0);
    for (std::uint32_t i = 0; i < positions_.size(); ++i) {
      const std::uint32_t t = tile_of_[i];
      const bool is_first = t != no_tile && model_.positions_of(model_.tiles[t])[0] == positions_[i];
      if (t == no_tile) answer.cost += model_.singles[positions_[i]].cost;
      if (is_first) answer.cost += model_.tiles[t].cost;
      if (t != no_tile)
        answer.choices[i] = is_first ? t - model_.tile_begin[positions_[i]] + 1 : covered_before;
    }
    return answer;
  }

 private:
  static constexpr std::uint32_t no_tile = 0xffffffff;
  static constexpr std::uint64_t step_limit = 50'000'000;  ///< edges looked at

  [[nodiscard]] bool is_free(const Tile& tile) const {
    return std::ranges::all_of(model_.positions_of(tile),
                               [&](std::uint32_t p) { return tile_of_[pieces_.local_index[p]] == no_tile; });
  }
  void take(std::uint32_t t) {
    const Tile& tile = model_.tiles[t];
    set(tile, t);
    if ((tile.is_hinge || has_hinge_) && closes_cycle(t))
      set(tile, no_tile);
    else
      has_hinge_ = has_hinge_ || tile.is_hinge;
  }
  void set(const Tile& tile, std::uint32_t t) {
    for (std::uint32_t p : model_.positions_of(tile)) tile_of_[pieces_.local_index[p]] = t;
  }

  /// Whether a way leaves tile t and comes back to it, when tiles are entered and left anywhere.
  bool closes_cycle(std::uint32_t t) {
    ++mark_;
    ahead_.clear();
    enter(pieces_.local_index[model_.positions_of(model_.tiles[t])[0]]);
    const std::size_t inside = ahead_.size();
    for (std::size_t k = 0; k < ahead_.size(); ++k)
      for (std::uint32_t next : model_.graph.outputs[positions_[ahead_[k]]]) {
        ++steps_;
        if (pieces_.piece_of[next] != piece_) continue;  // no cycle runs through two pieces
        const std::uint32_t i = pieces_.local_index[next];
        if (k >= inside && tile_of_[i] == t) return true;
        if (seen_[i] != mark_) enter(i);
      }
    return false;
  }
  /// Queues a position with all that is in one tile with it.
  void enter(std::uint32_t i) {
    const auto queue = [&](std::uint32_t local) {
      seen_[local] = mark_;
      ahead_.push_back(local);
    };
    if (tile_of_[i] == no_tile) return queue(i);
    for (std::uint32_t p : model_.positions_of(model_.tiles[tile_of_[i]])) queue(pieces_.local_index[p]);
  }

  const Model& model_;
  const Pieces& pieces_;
  std::span<const std::uint32_t> positions_;
  std::uint32_t piece_;
  std::vector<std::uint32_t> tile_of_;  ///< by local index
  std::vector<std::uint32_t> seen_;     ///< by local index: the last mark
  std::vector<std::uint32_t> ahead_;    ///< local indices
  std::uint32_t mark_ = 0;
  std::uint64_t steps_ = 0;
  bool has_hinge_ = false;
};

struct Saving {
  std::uint32_t first = 0;  ///< the tile's first position
  Cost saved = 0;           ///< over its nodes alone
  std::uint32_t tile = 0;
};

/// Of the tiles of the piece that save anything.
std::vector<Saving> find_savings(const Model& model, const Pieces& pieces, const Piece& piece) {
  std::vector<Saving> out;
  for (std::uint32_t p : pieces.positions_of(piece))
    for (std::uint32_t t = model.tile_begin[p]; t < model.tile_begin[p + 1]; ++t) {
      Cost saved = -model.tiles[t].cost;
      for (std::uint32_t q : model.positions_of(model.tiles[t])) saved += model.singles[q].cost;
      if (saved > 0) out.push_back({p, saved, t});
    }
  return out;
}

std::vector<std::uint32_t> tiles_in(std::span<const Saving> savings) {
  std::vector<std::uint32_t> out;
  for (const Saving& saving : savings) out.push_back(saving.tile);
  return out;
}

}  // namespace

Answer tessera::cover::solve_greedily(const Model& model, const Pieces& pieces, const Piece& piece) {
  Answer best = Greedy(model, pieces, piece).run();
  const Cost bound = best.bound;
  std::vector<Saving> savings = find_savings(model, pieces, piece);
  const auto try_order = [&](auto key) {
    std::ranges::sort(savings, {}, key);
    Answer other = Filling(model, pieces, piece).run(tiles_in(savings));
    if (other.cost < best.cost) best = std::move(other);
  };
  try_order([](const Saving& s) { return std::tuple(-s.saved, s.tile); });
  try_order([](const Saving& s) { return std::tuple(s.first, -s.saved, s.tile); });
  best.bound = std::min(best.cost, bound);
  return best;
}
