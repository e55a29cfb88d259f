// Which tiles can take part in a cycle.
//
// Contract every chosen tile to a vertex. A cycle enters each tile on it at some node x and leaves it at some
// node y. If x leads to y inside the tile, that part of the cycle is a path of the graph itself. If that were
// so in every tile, the graph would have a cycle. So a cycle needs a tile that can be entered at a node from
// which some exit cannot be reached inside it. Such a tile is a hinge; the others are, for cycles, as good as
// their nodes one by one. A tile that is not convex is a hinge: otherwise the way out and back would be a
// cycle.
#pragma once

#include <cstdint>
#include <vector>

#include "tessera/cover/model.h"

namespace tessera::cover {

/// Marks the tiles of `model` that can be on a cycle together with other tiles of the model, and returns a
/// label for each position: the positions a cycle runs through, and those of its tiles that it enters at,
/// have equal labels. May err on the side of marking and joining too much. Near-linear in the sizes of the
/// tiles.
[[nodiscard]] std::vector<std::uint32_t> mark_hinges(Model& model);

}  // namespace tessera::cover
