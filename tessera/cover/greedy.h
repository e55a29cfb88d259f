// A quick tiling and a quick bound, for when there is no time for better.
#pragma once

#include "tessera/cover/answer.h"
#include "tessera/cover/model.h"
#include "tessera/cover/pieces.h"

namespace tessera::cover {

/// A valid tiling of the piece: along it, at each position that is still free, the tile that saves most over
/// its nodes alone. Takes no hinges, so no cycle can arise. The bound charges each position the least share
/// of the cost of a tile over it. Linear in the sizes of the piece's tiles.
[[nodiscard]] Answer solve_greedily(const Model& model, const Pieces& pieces, const Piece& piece);

}  // namespace tessera::cover
