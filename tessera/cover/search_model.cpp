#include "tessera/cover/search_model.h"

#include <algorithm>
#include <numeric>

using namespace tessera::cover;

namespace {

class SearchModelBuilder {
 public:
  SearchModelBuilder(const Model& model, const Pieces& pieces, const Piece& piece)
      : model_(model), pieces_(pieces), piece_(piece), positions_(pieces.positions_of(piece)) {}

  SearchModel build() {
    out_.size = piece_.size;
    out_.words = (piece_.size + 63) / 64;
    out_.has_hinges = piece_.has_hinges && piece_.size <= hinge_position_limit;
    Cost total = 0;
    for (std::uint32_t p : positions_) total += model_.singles[p].cost;
    out_.fine = FineCosts(total);
    if (out_.has_hinges) find_reach();
    for (std::uint32_t i = 0; i < positions_.size(); ++i) add_single(i);
    for (std::uint32_t i = 0; i < positions_.size(); ++i) add_tiles_at(i);
    out_.start_begin.push_back(static_cast<std::uint32_t>(out_.tiles.size()));
    list_tiles_over();
    return std::move(out_);
  }

 private:
  using Bits = std::vector<std::uint64_t>;

  void find_reach();
  void add_single(std::uint32_t i);
  void add_tiles_at(std::uint32_t i);
  [[nodiscard]] SearchTile placed(const Tile& tile);
  void set_parts(SearchTile& tile);
  [[nodiscard]] bool add_before(SearchTile& tile);
  void list_tiles_over();
  [[nodiscard]] bool is_inside(std::uint32_t position) const {
    return pieces_.piece_of[position] == pieces_.piece_of[positions_[0]];
  }

  const Model& model_;
  const Pieces& pieces_;
  const Piece& piece_;
  std::span<const std::uint32_t> positions_;
  std::vector<Bits> before_;  ///< by position: those that lead to it
  std::vector<Bits> after_;   ///< by position: those that it leads to
  Bits hinged_;               ///< positions that are in some hinge
  SearchModel out_;
};

void SearchModelBuilder::find_reach() {
  before_.assign(out_.size, Bits(out_.words, 0));
  after_ = before_;
  hinged_.assign(out_.words, 0);
  const auto add = [&](std::vector<Bits>& rows, std::uint32_t to, std::uint32_t from) {
    for (std::uint32_t w = 0; w < out_.words; ++w) rows[to][w] |= rows[from][w];
    rows[to][from / 64] |= std::uint64_t{1} << (from % 64);
  };
  for (std::uint32_t i = 0; i < out_.size; ++i)
    for (std::uint32_t input : model_.graph.inputs[positions_[i]])
      if (is_inside(input)) add(before_, i, pieces_.local_index[input]);
  for (std::uint32_t i = out_.size; i-- > 0;)
    for (std::uint32_t output : model_.graph.outputs[positions_[i]])
      if (is_inside(output)) add(after_, i, pieces_.local_index[output]);
  for (std::uint32_t p : positions_)
    for (const Tile& tile : model_.tiles_at(p)) {
      if (!tile.is_hinge) continue;
      for (std::uint32_t q : model_.positions_of(tile)) {
        const std::uint32_t i = pieces_.local_index[q];
        hinged_[i / 64] |= std::uint64_t{1} << (i % 64);
      }
    }
}

void SearchModelBuilder::add_single(std::uint32_t i) {
  SearchTile tile;
  tile.begin = static_cast<std::uint32_t>(out_.positions.size());
  tile.size = 1;
  tile.cost = out_.fine.of(model_.singles[positions_[i]].cost);
  out_.positions.push_back(i);
  set_parts(tile);
  out_.tiles.push_back(tile);
}

void SearchModelBuilder::add_tiles_at(std::uint32_t i) {
  const auto tiles = model_.tiles_at(positions_[i]);
  out_.start_begin.push_back(static_cast<std::uint32_t>(out_.tiles.size()));
  for (std::uint32_t k = 0; k < tiles.size(); ++k) {
    if (tiles[k].is_hinge && !out_.has_hinges) continue;
    SearchTile tile = placed(tiles[k]);
    tile.choice = k + 1;
    tile.is_hinge = tiles[k].is_hinge;
    if (!tile.is_hinge || add_before(tile)) out_.tiles.push_back(tile);
  }
}

SearchTile SearchModelBuilder::placed(const Tile& tile) {
  SearchTile out;
  out.begin = static_cast<std::uint32_t>(out_.positions.size());
  out.size = tile.size;
  out.cost = out_.fine.of(tile.cost);
  for (std::uint32_t p : model_.positions_of(tile)) out_.positions.push_back(pieces_.local_index[p]);
  set_parts(out);
  return out;
}

void SearchModelBuilder::set_parts(SearchTile& tile) {
  tile.part_begin = static_cast<std::uint32_t>(out_.parts.size());
  for (std::uint32_t i : out_.positions_of(tile)) {
    if (out_.parts.size() == tile.part_begin || out_.parts.back().word != i / 64)
      out_.parts.push_back({i / 64, 0});
    out_.parts.back().bits |= std::uint64_t{1} << (i % 64);
  }
  tile.part_count = static_cast<std::uint32_t>(out_.parts.size()) - tile.part_begin;
}

/// Sets `before`; false if the tile is not convex, that is, some position outside both leads to it and is led
/// to.
bool SearchModelBuilder::add_before(SearchTile& tile) {
  Bits before(out_.words, 0);
  Bits after(out_.words, 0);
  for (std::uint32_t i : out_.positions_of(tile))
    for (std::uint32_t w = 0; w < out_.words; ++w) {
      before[w] |= before_[i][w];
      after[w] |= after_[i][w];
    }
  for (std::uint32_t i : out_.positions_of(tile)) before[i / 64] &= ~(std::uint64_t{1} << (i % 64));
  for (std::uint32_t w = 0; w < out_.words; ++w)
    if ((before[w] & after[w]) != 0) return false;
  tile.before = static_cast<std::uint32_t>(out_.befores.size());
  for (std::uint32_t w = 0; w < out_.words; ++w) out_.befores.push_back(before[w] & hinged_[w]);
  return true;
}

void SearchModelBuilder::list_tiles_over() {
  out_.over_begin.assign(out_.size + std::size_t{1}, 0);
  for (const SearchTile& tile : out_.tiles)
    for (std::uint32_t i : out_.positions_of(tile)) ++out_.over_begin[i + 1];
  std::partial_sum(out_.over_begin.begin(), out_.over_begin.end(), out_.over_begin.begin());
  std::vector<std::uint32_t> cursor(out_.over_begin.begin(), out_.over_begin.end() - 1);
  out_.over.resize(out_.over_begin.back());
  for (std::uint32_t t = 0; t < out_.tiles.size(); ++t)
    for (std::uint32_t i : out_.positions_of(out_.tiles[t])) out_.over[cursor[i]++] = t;
}

}  // namespace

SearchModel tessera::cover::make_search_model(const Model& model, const Pieces& pieces, const Piece& piece) {
  return SearchModelBuilder(model, pieces, piece).build();
}
