#include "tessera/pattern/chain_tiles.h"

#include <algorithm>

#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::pattern;

namespace {

/// The payload of a candidate: its nodes in the order of the chain.
class ChainTiles final : public TileSource {
 public:
  explicit ChainTiles(ChainTilesOptions options) : options_(std::move(options)) {}

  [[nodiscard]] std::string name() const override { return std::string(options_.name); }

  [[nodiscard]] Result<void> list(const Graph& graph, CandidateList& out) const override {
    StepPrices prices(options_.costs, graph);
    for (NodeId node = 0; node < graph.node_count(); ++node) {
      const auto chain = options_.chain_from(graph, node);
      if (!chain) continue;
      SmallVector<NodeId, 6> nodes;
      for (const NodeId next : chain->nodes) {
        nodes.insert(std::upper_bound(nodes.begin(), nodes.end(), next), next);
        if (nodes.size() < options_.least_nodes) continue;
        const std::span in_order(chain->nodes.data(), nodes.size());
        if (out.add(nodes, options_.part * prices.of(nodes), chain->kind, in_order)) continue;
        out.set_full(name());
        return {};
      }
    }
    return {};
  }

  void describe(const Graph& graph, const CandidateList& list, std::size_t i, Tile& out) const override {
    TileKind kind{.name = name_of(list, i)};
    for (const NodeId node : list.nodes(i)) out.nodes.push_back(node);
    for (const NodeId node : list.payload(i)) {
      kind.kernel += cat(kind.kernel.empty() ? "" : "+", graph.op_name(graph.op(node)));
      out.node_images.push_back(node);
    }
    out.kind = std::make_shared<const TileKind>(std::move(kind));
    find_boundary(graph, out);
  }

  [[nodiscard]] std::string name_of(const CandidateList& list, std::size_t i) const override {
    return std::string(options_.kinds[list.kind(i)]);
  }

 private:
  ChainTilesOptions options_;
};

}  // namespace

std::shared_ptr<const TileSource> pattern::chain_tiles(ChainTilesOptions options) {
  return std::make_shared<ChainTiles>(std::move(options));
}
