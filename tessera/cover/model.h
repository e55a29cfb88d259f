// A validated problem in the form the solvers work on: nodes renumbered to positions in a topological order,
// costs as whole numbers, candidates that cannot help removed.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "tessera/base/result.h"
#include "tessera/cover/answer.h"
#include "tessera/cover/cover.h"
#include "tessera/cover/fixed_cost.h"
#include "tessera/cover/precedence.h"

namespace tessera::cover {

inline constexpr std::uint32_t no_candidate = std::numeric_limits<std::uint32_t>::max();

/// The cheapest way to have a position in no tile with others: a single-node candidate, or uncovered.
struct Single {
  Cost cost = 0;
  std::uint32_t candidate = no_candidate;
};

/// A candidate with two nodes or more.
struct Tile {
  std::uint32_t begin = 0;  ///< of its positions in Model::positions
  std::uint32_t size = 0;
  std::uint32_t candidate = 0;
  bool is_hinge = false;  ///< it can take part in a cycle; see hinge.h
  Cost cost = 0;
};

/// Positions count along `order`. Tiles are sorted by their first position, then by a key that depends on
/// their shape and cost only, so that repeated parts of a graph list them alike.
struct Model {
  std::vector<std::uint32_t> order;  ///< the node at each position
  Precedence graph;                  ///< between positions
  std::vector<Single> singles;       ///< by position; the cost is 0 where no tile is, for it does not matter
  std::vector<Tile> tiles;           ///< no two with the same positions
  std::vector<std::uint32_t> tile_begin;  ///< tiles that start at p: [tile_begin[p], tile_begin[p + 1])
  std::vector<std::uint32_t> positions;   ///< of all tiles, each ascending
  std::vector<bool> is_tiled;             ///< by position: some tile has it
  CostScale scale;
  bool costs_are_exact = false;  ///< no cost was rounded

  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(order.size()); }
  [[nodiscard]] std::span<const std::uint32_t> positions_of(const Tile& tile) const {
    return {positions.data() + tile.begin, tile.size};
  }
  [[nodiscard]] std::span<const Tile> tiles_at(std::uint32_t position) const {
    return {tiles.data() + tile_begin[position], tile_begin[position + 1] - tile_begin[position]};
  }
};

/// The model of `problem`; no tile is marked as a hinge yet. An error if the edges form a cycle. REQUIRES
/// validate(problem) is ok.
[[nodiscard]] Result<Model> make_model(const Problem& problem, Effort& effort);

}  // namespace tessera::cover
