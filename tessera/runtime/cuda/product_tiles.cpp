#include "tessera/runtime/cuda/product_tiles.h"

#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/runtime/cuda/product_chain.h"

using namespace tessera;
using namespace tessera::runtime::cuda;
using pattern::CandidateList;
using pattern::Graph;
using pattern::NodeId;

/// The payload of a candidate: its nodes in the order of the chain. A product alone is a step anyway.
Result<void> ProductTiles::list(const Graph& graph, CandidateList& out) const {
  pattern::StepPrices prices(costs_, graph);
  for (NodeId node = 0; node < graph.node_count(); ++node) {
    const auto chain = product_chain(graph, node);
    if (!chain) continue;
    SmallVector<NodeId, 4> nodes;
    for (const NodeId next : chain->nodes) {
      nodes.insert(std::upper_bound(nodes.begin(), nodes.end(), next), next);
      if (nodes.size() == 1) continue;
      if (out.add(nodes, prices.of(nodes), 0, std::span(chain->nodes.data(), nodes.size()))) continue;
      out.set_full(name());
      return {};
    }
  }
  return {};
}

void ProductTiles::describe(const Graph& graph, const CandidateList& list, std::size_t i,
                            pattern::Tile& out) const {
  pattern::TileKind kind{.name = name_of(list, i)};
  for (const NodeId node : list.nodes(i)) out.nodes.push_back(node);
  for (const NodeId node : list.payload(i)) {
    kind.kernel += cat(kind.kernel.empty() ? "" : "+", graph.op_name(graph.op(node)));
    out.node_images.push_back(node);
  }
  out.kind = std::make_shared<const pattern::TileKind>(std::move(kind));
  find_boundary(graph, out);
}

std::string ProductTiles::name_of(const CandidateList&, std::size_t) const { return "product"; }
