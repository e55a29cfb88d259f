// Splits a model into parts that can be solved one by one.
//
// Two positions are in one component if a tile has both, or if a cycle may run through both (hinge.h). Tiles
// of two components are disjoint and on no common cycle, so their choices do not touch. Within a component,
// taken in topological order, a place that no tile reaches across is a cut. A cycle that had positions on
// both sides would have to come back across it; edges only lead forward, so a tile would have to reach
// across. So the choices before and after a cut do not touch either. Positions alone in their piece need no
// solver.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/cover/model.h"

namespace tessera::cover {

/// An independent part of two positions or more.
struct Piece {
  std::uint32_t begin = 0;  ///< of its positions in Pieces::positions
  std::uint32_t size = 0;
  std::uint32_t tiles = 0;
  bool has_hinges = false;
};

struct Pieces {
  std::vector<Piece> pieces;
  std::vector<std::uint32_t> positions;    ///< of all pieces, each ascending
  std::vector<std::uint32_t> piece_of;     ///< by position; `alone` if it is in none
  std::vector<std::uint32_t> local_index;  ///< by position: where it stands in its piece
  static constexpr std::uint32_t alone = 0xffffffff;

  [[nodiscard]] std::span<const std::uint32_t> positions_of(const Piece& piece) const {
    return {positions.data() + piece.begin, piece.size};
  }
};

/// REQUIRES `labels` comes from mark_hinges(model).
[[nodiscard]] Pieces split(const Model& model, std::span<const std::uint32_t> labels);

}  // namespace tessera::cover
