#include "tessera/pattern/tile.h"

#include <algorithm>
#include <set>

using namespace tessera::pattern;

void tessera::pattern::find_boundary(const Graph& graph, Tile& tile) {
  constexpr std::size_t few = 8;  // most tiles: looking at each is faster than searching
  const auto is_inside = [&](NodeId node) {
    if (tile.nodes.size() > few) return std::ranges::binary_search(tile.nodes, node);
    return std::ranges::find(tile.nodes, node) != tile.nodes.end();
  };
  std::set<ValueId> many;  // the inputs so far, once they are not few
  const auto is_new_input = [&](ValueId value) {
    if (tile.inputs.size() < few) return std::ranges::find(tile.inputs, value) == tile.inputs.end();
    if (many.empty()) many.insert(tile.inputs.begin(), tile.inputs.end());
    return many.insert(value).second;
  };
  for (NodeId node : tile.nodes)
    for (const auto values : {graph.inputs(node), graph.reads(node)})
      for (ValueId value : values) {
        if (graph.producer(value) != none && is_inside(graph.producer(value))) continue;
        if (is_new_input(value)) tile.inputs.push_back(value);
      }
  for (NodeId node : tile.nodes)
    for (std::uint32_t k = 0; k < graph.result_count(node); ++k) {
      const ValueId value = graph.result(node, k);
      const auto consumers = graph.consumers(value);
      if (graph.is_output(value) || !std::ranges::all_of(consumers, is_inside)) tile.outputs.push_back(value);
    }
  if (tile.outputs.size() > 1) std::ranges::sort(tile.outputs);
}
