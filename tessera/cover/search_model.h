// One piece in the form the bounded search works on: sets of positions as bits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/cover/answer.h"
#include "tessera/cover/model.h"
#include "tessera/cover/pieces.h"

namespace tessera::cover {

/// Positions as bits of one word.
struct BitPart {
  std::uint32_t word = 0;
  std::uint64_t bits = 0;
};

/// A tile of the piece, or one of its positions alone. Positions are local indices.
struct SearchTile {
  std::uint32_t begin = 0;  ///< of its positions in SearchModel::positions
  std::uint32_t size = 0;
  Cost cost = 0;      ///< fine
  Choice choice = 0;  ///< at its first position
  bool is_hinge = false;
  std::uint32_t part_begin = 0;  ///< of its bits in SearchModel::parts
  std::uint32_t part_count = 0;
  std::uint32_t before = 0;  ///< hinges only: where the words of before() begin
};

/// `before` of a hinge: the positions outside it that lead to it and that are in some hinge. A tiling is
/// acyclic if its hinges can be placed one after another so that each comes after the hinges on such
/// positions.
struct SearchModel {
  std::uint32_t size = 0;   ///< positions
  std::uint32_t words = 0;  ///< for one bit per position
  bool has_hinges = false;
  FineCosts fine{0};
  std::vector<SearchTile> tiles;  ///< first the `size` positions alone, then the tiles by first position
  std::vector<std::uint32_t> positions;    ///< of all tiles, each ascending
  std::vector<BitPart> parts;              ///< of all tiles, each ascending
  std::vector<std::uint64_t> befores;      ///< `words` words for each hinge
  std::vector<std::uint32_t> start_begin;  ///< tiles that start at p: [start_begin[p], start_begin[p + 1])
  std::vector<std::uint32_t> over;         ///< tiles over each position
  std::vector<std::uint32_t> over_begin;   ///< where those of position p begin in `over`

  [[nodiscard]] std::span<const std::uint32_t> positions_of(const SearchTile& tile) const {
    return {positions.data() + tile.begin, tile.size};
  }
  [[nodiscard]] std::span<const BitPart> parts_of(const SearchTile& tile) const {
    return {parts.data() + tile.part_begin, tile.part_count};
  }
  [[nodiscard]] std::span<const std::uint64_t> before(const SearchTile& hinge) const {
    return {befores.data() + hinge.before, words};
  }
  [[nodiscard]] std::span<const std::uint32_t> tiles_over(std::uint32_t position) const {
    return {over.data() + over_begin[position], over_begin[position + 1] - over_begin[position]};
  }
};

/// Beyond this many positions the hinges of a piece are left out: the bits of what leads to them would fill
/// the memory. A tiling without them is valid, but no longer proven best.
inline constexpr std::uint32_t hinge_position_limit = 4096;

/// Candidates that are not convex are left out.
[[nodiscard]] SearchModel make_search_model(const Model& model, const Pieces& pieces, const Piece& piece);

}  // namespace tessera::cover
