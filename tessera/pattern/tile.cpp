#include "tessera/pattern/tile.h"

#include <algorithm>

using namespace tessera::pattern;

void tessera::pattern::find_boundary(const Graph& graph, Tile& tile) {
  constexpr std::size_t few = 8;  // most tiles: looking at each is faster than searching
  const auto is_inside = [&](NodeId node) {
    if (tile.nodes.size() > few) return std::ranges::binary_search(tile.nodes, node);
    return std::ranges::find(tile.nodes, node) != tile.nodes.end();
  };
  SmallVector<ValueId, 16> known;  // the inputs so far, ascending
  for (NodeId node : tile.nodes)
    for (const auto values : {graph.inputs(node), graph.reads(node)})
      for (ValueId value : values) {
        if (graph.producer(value) != none && is_inside(graph.producer(value))) continue;
        const auto at = std::ranges::lower_bound(known, value);
        if (at != known.end() && *at == value) continue;
        known.insert(at, value);
        tile.inputs.push_back(value);
      }
  for (NodeId node : tile.nodes)
    for (std::uint32_t k = 0; k < graph.result_count(node); ++k) {
      const ValueId value = graph.result(node, k);
      const auto consumers = graph.consumers(value);
      if (graph.is_output(value) || !std::ranges::all_of(consumers, is_inside)) tile.outputs.push_back(value);
    }
  if (tile.outputs.size() > 1) std::ranges::sort(tile.outputs);
}
