// The instances of the tiler's figures, as graphs and targets.
#pragma once

#include <cstdint>

#include "tessera/cover/cover.h"
#include "tessera/ir/function.h"
#include "tessera/pattern/graph.h"
#include "tessera/pattern/target.h"

namespace tessera::bench {

struct TileInstance {
  pattern::Graph graph;
  pattern::Target target;
};

/// A decoder, op by op: norms, projections, rotary positions, capped attention, a tanh GELU; 93 nodes a
/// layer. 40 patterns, and all generated regions.
[[nodiscard]] TileInstance transformer(std::uint32_t layers);

/// a-b-c-d-e-a-b-…, with overlapping patterns of one to five ops.
[[nodiscard]] TileInstance chain(std::uint32_t nodes);

/// Disjoint chains a-b-c with the patterns ab, bc and a.
[[nodiscard]] TileInstance copies(std::uint32_t count);

/// Element-wise ops of one shape, each of two of the sixteen values before it, and all generated regions at
/// cost 1. With `product_every`, every so many ops one is a matrix product, whose result comes back.
[[nodiscard]] TileInstance woven(std::uint32_t nodes, std::uint32_t product_every = 0);

/// The problem as a graph whose nodes all have ops of their own, and one pattern for each candidate.
[[nodiscard]] TileInstance from_problem(const cover::Problem& problem);

enum class LayerWidths : std::uint8_t {
  equal,
  different,  ///< every layer has an inner width of its own, so that no two layers cost the same
};

/// A decoder as a function of the IR: norms, attention with a mask, a GELU, op by op.
[[nodiscard]] ir::FunctionRef decoder(std::uint32_t layers, LayerWidths widths);

/// Matrix products with epilogues and all generated regions, at costs computed from shapes.
[[nodiscard]] pattern::Target compiler_target();

}  // namespace tessera::bench
