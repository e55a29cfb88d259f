#include "tessera/pattern/tile.h"

#include <algorithm>
#include <set>

using namespace tessera::pattern;

std::vector<NodeImage> tessera::pattern::images_of(const Graph& graph, const Tile& tile) {
  std::vector<NodeImage> out;
  if (tile.kind->nodes.empty()) {
    for (const NodeId& node : tile.node_images) out.push_back({graph.id(node), {&node, 1}});
    return out;
  }
  std::span<const NodeId> left = tile.node_images;
  for (const PatternNodeName& name : tile.kind->nodes) {
    const std::size_t count = name.is_chain ? left[0] : 1;
    if (name.is_chain) left = left.subspan(1);
    out.push_back({name.id, left.first(count), name.is_chain});
    left = left.subspan(count);
  }
  return out;
}

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
  const auto take_from = [&](std::span<const ValueId> values) {
    for (ValueId value : values) {
      const NodeId producer = graph.producer(value);
      if (producer != none && is_inside(producer)) continue;
      if (is_new_input(value)) tile.inputs.push_back(value);
    }
  };
  for (NodeId node : tile.nodes) {
    take_from(graph.inputs(node));
    take_from(graph.reads(node));
  }
  for (NodeId node : tile.nodes)
    for (std::uint32_t k = 0; k < graph.result_count(node); ++k) {
      const ValueId value = graph.result(node, k);
      const auto consumers = graph.consumers(value);
      if (graph.is_output(value) || !std::ranges::all_of(consumers, is_inside)) tile.outputs.push_back(value);
    }
  if (tile.outputs.size() > 1) std::ranges::sort(tile.outputs);
}
