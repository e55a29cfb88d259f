#include "tessera/cover/model.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "tessera/cover/order.h"
#include "tessera/cover/sequence_table.h"

using namespace tessera;
using namespace tessera::cover;

namespace {

struct RealSingle {
  double cost = 0;
  std::uint32_t candidate = no_candidate;
};

/// A tile before costs are fixed. Sorting by these fields gives the order that Model promises.
struct RealTile {
  std::uint32_t first = 0;
  std::uint32_t size = 0;
  std::uint64_t shape = 0;  ///< a hash of the distances between its positions
  double cost = 0;
  std::uint32_t candidate = 0;
  std::uint32_t begin = 0;
};

class ModelBuilder {
 public:
  ModelBuilder(const Problem& problem, Effort& effort) : problem_(problem), effort_(effort) {}

  Result<Model> build() {
    const Precedence graph = make_precedence(problem_.node_count, problem_.edges);
    find_singles();
    find_useful();
    model_.order = TESSERA_TRY(choose_order(graph, useful_sets(), effort_));
    model_.graph = renumbered(graph, model_.order);
    place_tiles();
    drop_duplicates();
    find_dearest();
    cap_uncovered();
    fix_costs();
    return std::move(model_);
  }

 private:
  void find_singles();
  void find_useful();
  [[nodiscard]] std::vector<NodeSet> useful_sets() const;
  void place_tiles();
  [[nodiscard]] RealTile place(std::uint32_t candidate, std::span<const std::uint32_t> position);
  void drop_duplicates();
  [[nodiscard]] bool same_positions(const RealTile& a, const RealTile& b) const;
  void find_dearest();
  [[nodiscard]] bool is_tiled(std::size_t position) const { return dearest_[position] >= 0; }
  void cap_uncovered();
  void fix_costs();

  const Problem& problem_;
  Effort& effort_;
  std::vector<RealSingle> singles_;    ///< by node; by position after place_tiles
  std::vector<std::uint32_t> useful_;  ///< candidates
  std::vector<RealTile> tiles_;
  std::vector<double> dearest_;  ///< by position: the cost of the dearest tile over it, -1 if there is none
  Model model_;
};

void ModelBuilder::find_singles() {
  singles_.resize(problem_.node_count);
  for (std::uint32_t node = 0; node < problem_.node_count; ++node)
    singles_[node].cost = problem_.uncovered_cost[node];
  for (std::uint32_t i = 0; i < problem_.candidates.size(); ++i) {
    const Candidate& candidate = problem_.candidates[i];
    if (candidate.nodes.size() != 1) continue;
    RealSingle& best = singles_[candidate.nodes[0]];
    const bool covers_for_free = candidate.cost == best.cost && best.candidate == no_candidate;
    if (candidate.cost < best.cost || covers_for_free) best = {candidate.cost, i};
  }
}

/// Keeps the candidates that can be part of a best tiling. Splitting a tile into single nodes never makes a
/// cycle: a cycle of the finer graph that is none of the coarser one would lie inside the tile, and the edges
/// inside it are acyclic. So a tile that costs more than its nodes alone is in no best tiling.
void ModelBuilder::find_useful() {
  for (std::uint32_t i = 0; i < problem_.candidates.size(); ++i) {
    const Candidate& candidate = problem_.candidates[i];
    if (candidate.nodes.size() < 2) continue;
    double alone = 0;
    bool all_covered = true;
    for (std::uint32_t node : candidate.nodes) {
      alone += singles_[node].cost;
      all_covered = all_covered && singles_[node].candidate != no_candidate;
    }
    // At equal cost the tile stays if it covers a node that would be uncovered without it.
    if (candidate.cost < alone || (candidate.cost == alone && !all_covered)) useful_.push_back(i);
  }
}

std::vector<NodeSet> ModelBuilder::useful_sets() const {
  std::vector<NodeSet> sets;
  sets.reserve(useful_.size());
  for (std::uint32_t i : useful_) sets.push_back(problem_.candidates[i].nodes);
  return sets;
}

void ModelBuilder::place_tiles() {
  const std::vector<std::uint32_t> position = inverse(model_.order);
  tiles_.reserve(useful_.size());
  for (std::uint32_t i : useful_) tiles_.push_back(place(i, position));
  std::vector<RealSingle> by_position(singles_.size());
  for (std::uint32_t node = 0; node < singles_.size(); ++node) by_position[position[node]] = singles_[node];
  singles_ = std::move(by_position);
}

RealTile ModelBuilder::place(std::uint32_t candidate, std::span<const std::uint32_t> position) {
  const auto& nodes = problem_.candidates[candidate].nodes;
  const auto begin = static_cast<std::uint32_t>(model_.positions.size());
  for (std::uint32_t node : nodes) model_.positions.push_back(position[node]);
  const auto placed = std::span(model_.positions).subspan(begin);
  if (!std::ranges::is_sorted(placed)) std::ranges::sort(placed);
  SmallVector<std::uint64_t, 16> distances;
  for (std::uint32_t p : placed) distances.push_back(p - placed[0]);
  return {placed[0],
          static_cast<std::uint32_t>(nodes.size()),
          mix_words(distances),
          problem_.candidates[candidate].cost,
          candidate,
          begin};
}

/// Sorts the tiles, and of those over the same positions keeps the cheapest: one can stand for the other.
void ModelBuilder::drop_duplicates() {
  const auto key = [](const RealTile& t) { return std::tuple(~t.size, t.shape, t.cost, t.candidate); };
  std::vector<std::uint32_t>& begin = model_.tile_begin;
  begin.assign(problem_.node_count + std::size_t{1}, 0);
  for (const RealTile& tile : tiles_) ++begin[tile.first + 1];
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  std::vector<RealTile> sorted(tiles_.size());
  std::vector<std::uint32_t> cursor(begin.begin(), begin.end() - 1);
  for (const RealTile& tile : tiles_) sorted[cursor[tile.first]++] = tile;

  tiles_.clear();
  for (std::uint32_t p = 0; p < problem_.node_count; ++p) {
    const auto bucket = std::span(sorted).subspan(begin[p], begin[p + 1] - begin[p]);
    std::ranges::sort(bucket, {}, key);
    begin[p] = static_cast<std::uint32_t>(tiles_.size());
    for (const RealTile& tile : bucket)
      if (tiles_.size() == begin[p] || !same_positions(tiles_.back(), tile)) tiles_.push_back(tile);
  }
  begin.back() = static_cast<std::uint32_t>(tiles_.size());
}

bool ModelBuilder::same_positions(const RealTile& a, const RealTile& b) const {
  const auto* pool = model_.positions.data();
  return a.size == b.size && a.shape == b.shape &&
         std::equal(pool + a.begin, pool + a.begin + a.size, pool + b.begin);
}

void ModelBuilder::find_dearest() {
  dearest_.assign(singles_.size(), -1);
  for (const RealTile& tile : tiles_)
    for (std::uint32_t i = 0; i < tile.size; ++i) {
      double& at = dearest_[model_.positions[tile.begin + i]];
      at = std::max(at, tile.cost);
    }
}

/// A caller may mean "never leave this uncovered" by an enormous cost, which would take the bits that the
/// other costs need. Let `top` be the largest single cost, and `rest` no less than what any tiling pays for
/// everything else. If top > rest, a tiling with fewer tops is cheaper whatever else it does, and so it is
/// for every other value above `rest`: lowering the tops to such a value changes no best tiling, and only
/// lowers a bound.
void ModelBuilder::cap_uncovered() {
  double top = 0;
  for (std::size_t p = 0; p < singles_.size(); ++p)
    if (is_tiled(p)) top = std::max(top, singles_[p].cost);
  double rest = 0;
  for (std::size_t p = 0; p < singles_.size(); ++p)
    if (is_tiled(p)) rest += dearest_[p] + (singles_[p].cost < top ? singles_[p].cost : 0);
  const double cap = rest > 0 ? 2 * rest : 1;
  if (top <= cap) return;
  for (RealSingle& single : singles_)
    if (single.cost == top) single.cost = cap;
}

void ModelBuilder::fix_costs() {
  // A useful tile costs no more than its nodes alone, so no sum over disjoint tiles exceeds this total.
  double total = 0;
  for (std::size_t p = 0; p < singles_.size(); ++p)
    if (is_tiled(p)) total += singles_[p].cost;
  model_.scale = CostScale(total);
  model_.costs_are_exact = true;
  Cost unit = 0;
  double last_cost = -1;  // costs repeat
  Cost last_quanta = 0;
  const auto fix = [&](double cost) {
    if (cost == last_cost) return last_quanta;
    model_.costs_are_exact = model_.costs_are_exact && model_.scale.is_exact(cost);
    last_cost = cost;
    last_quanta = model_.scale.quanta(cost);
    unit = std::gcd(unit, last_quanta);
    return last_quanta;
  };
  model_.singles.reserve(singles_.size());
  model_.is_tiled.reserve(singles_.size());
  model_.tiles.reserve(tiles_.size());
  for (std::size_t p = 0; p < singles_.size(); ++p)
    model_.singles.push_back({is_tiled(p) ? fix(singles_[p].cost) : 0, singles_[p].candidate});
  for (std::size_t p = 0; p < singles_.size(); ++p) model_.is_tiled.push_back(is_tiled(p));
  for (const RealTile& tile : tiles_)
    model_.tiles.push_back({tile.begin, tile.size, tile.candidate, false, fix(tile.cost)});
  if (unit == 0) return;
  model_.scale.set_unit(unit);
  for (Single& single : model_.singles) single.cost /= unit;
  for (Tile& tile : model_.tiles) tile.cost /= unit;
}

}  // namespace

Result<Model> tessera::cover::make_model(const Problem& problem, Effort& effort) {
  return ModelBuilder(problem, effort).build();
}
