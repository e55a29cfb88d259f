#include "tessera/cover/greedy.h"

#include <algorithm>
#include <numeric>

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
    answer_.bound = std::min(answer_.cost, least_shares());
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

}  // namespace

Answer tessera::cover::solve_greedily(const Model& model, const Pieces& pieces, const Piece& piece) {
  return Greedy(model, pieces, piece).run();
}
