// A quick tiling and a quick bound, for when there is no time for better.
#pragma once

#include "tessera/cover/answer.h"
#include "tessera/cover/model.h"
#include "tessera/cover/pieces.h"

namespace tessera::cover {

/// A valid tiling of the piece, the best of three: along it, at each position that is still free, the tile
/// that saves most over its nodes alone, hinges left out; the same with hinges that close no cycle; and the
/// tile that saves most first, wherever it is. The bound charges each position the least share of the cost of
/// a tile over it. Near-linear in the sizes of the piece's tiles, and bounded for the search for cycles.
[[nodiscard]] Answer solve_greedily(const Model& model, const Pieces& pieces, const Piece& piece);

}  // namespace tessera::cover
