// Chains of nodes that a library computes as one step, as tiles to choose from.
#pragma once

#include <functional>

#include "tessera/base/small_vector.h"
#include "tessera/pattern/step_cost.h"
#include "tessera/pattern/tile_source.h"

namespace tessera::pattern {

/// Its first nodes, however many, are a chain too.
struct TileChain {
  SmallVector<NodeId, 6> nodes;  ///< in the order of the chain
  std::uint32_t kind = 0;
};

struct ChainTilesOptions {
  std::string_view name;                    ///< of the source
  std::span<const std::string_view> kinds;  ///< the names of their tiles
  /// The longest chain that begins at a node; nothing if the library does not compute the node itself.
  std::function<std::optional<TileChain>(const Graph&, NodeId)> chain_from;
  std::size_t least_nodes = 1;  ///< of a tile
  double part = 1;              ///< of the price of a step that a tile takes
  StepCosts costs = {};
};

[[nodiscard]] std::shared_ptr<const TileSource> chain_tiles(ChainTilesOptions options);

}  // namespace tessera::pattern
