#include "tessera/cover/pieces.h"

#include <algorithm>
#include <numeric>

#include "tessera/cover/disjoint_sets.h"

using namespace tessera::cover;

namespace {

DisjointSets components(const Model& model, std::span<const std::uint32_t> labels) {
  DisjointSets sets(model.size());
  for (const Tile& tile : model.tiles) {
    const auto positions = model.positions_of(tile);
    for (std::uint32_t p : positions.subspan(1)) sets.join(positions[0], p);
  }
  std::vector<std::uint32_t> first_with(*std::ranges::max_element(labels) + std::size_t{1}, Pieces::alone);
  for (std::uint32_t p = 0; p < labels.size(); ++p) {
    std::uint32_t& first = first_with[labels[p]];
    if (first == Pieces::alone)
      first = p;
    else
      sets.join(first, p);
  }
  return sets;
}

/// Cuts components into pieces.
class Splitter {
 public:
  Splitter(const Model& model, DisjointSets sets) : model_(model), sets_(std::move(sets)) {}

  Pieces run() {
    sort_by_component();
    out_.piece_of.assign(model_.size(), Pieces::alone);
    out_.local_index.assign(model_.size(), 0);
    for (std::uint32_t begin = 0; begin < by_component_.size();) begin = take_piece(begin);
    return std::move(out_);
  }

 private:
  /// Lists positions by component, ascending within each.
  void sort_by_component() {
    std::vector<std::uint32_t> cursor(model_.size() + std::size_t{1}, 0);
    for (std::uint32_t p = 0; p < model_.size(); ++p) ++cursor[sets_.find(p) + 1];
    std::partial_sum(cursor.begin(), cursor.end(), cursor.begin());
    by_component_.resize(model_.size());
    index_.resize(model_.size());
    for (std::uint32_t p = 0; p < model_.size(); ++p) {
      index_[p] = cursor[sets_.find(p)]++;
      by_component_[index_[p]] = p;
    }
  }

  /// The piece that starts at `begin` of by_component_; returns where the next one starts.
  std::uint32_t take_piece(std::uint32_t begin) {
    Piece piece{.begin = static_cast<std::uint32_t>(out_.positions.size())};
    std::uint32_t end = begin + 1;
    for (std::uint32_t i = begin; i < end; ++i)
      for (const Tile& tile : model_.tiles_at(by_component_[i])) {
        end = std::max(end, index_[model_.positions_of(tile).back()] + 1);
        piece.has_hinges = piece.has_hinges || tile.is_hinge;
        ++piece.tiles;
      }
    piece.size = end - begin;
    if (piece.size > 1) keep(piece, std::span(by_component_).subspan(begin, piece.size));
    return end;
  }

  void keep(const Piece& piece, std::span<const std::uint32_t> positions) {
    for (std::uint32_t i = 0; i < positions.size(); ++i) {
      out_.piece_of[positions[i]] = static_cast<std::uint32_t>(out_.pieces.size());
      out_.local_index[positions[i]] = i;
    }
    out_.positions.insert(out_.positions.end(), positions.begin(), positions.end());
    out_.pieces.push_back(piece);
  }

  const Model& model_;
  DisjointSets sets_;
  std::vector<std::uint32_t> by_component_;
  std::vector<std::uint32_t> index_;  ///< by position: where it stands in by_component_
  Pieces out_;
};

}  // namespace

Pieces tessera::cover::split(const Model& model, std::span<const std::uint32_t> labels) {
  if (model.size() == 0) return {};
  return Splitter(model, components(model, labels)).run();
}
