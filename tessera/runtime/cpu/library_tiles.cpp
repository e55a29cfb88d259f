#include "tessera/runtime/cpu/library_tiles.h"

#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/pattern/convexity.h"
#include "tessera/runtime/cpu/library_chain.h"

using namespace tessera;
using namespace tessera::runtime::cpu;
using pattern::CandidateList;
using pattern::Graph;
using pattern::NodeId;

namespace {

/// A step of the library against one of the op alone, which a loop over elements may have to compute: what it
/// takes beside the arithmetic.
constexpr double library_part = 0.9;

std::string_view word(LibraryOp op) {
  constexpr std::string_view words[] = {"matmul",       "integer_matmul", "conv",
                                        "integer_conv", "max_pool",       "avg_pool",
                                        "attention",    "half_matmul",    "slice_conv"};
  return words[static_cast<std::size_t>(op)];
}

}  // namespace

/// The payload of a candidate: its nodes in the order of the chain.
Result<void> LibraryTiles::list(const Graph& graph, CandidateList& out) const {
  pattern::StepCosts costs = costs_;
  costs.step_ns *= library_part;
  costs.byte_ns *= library_part;
  pattern::StepPrices prices(costs, graph);
  std::optional<pattern::Convexity> convexity;
  for (NodeId node = 0; node < graph.node_count(); ++node) {
    const auto chain = chain_from(graph, node, accuracy_);
    if (!chain) continue;
    SmallVector<NodeId, 6> nodes;
    for (const NodeId next : chain->nodes) {
      nodes.insert(std::upper_bound(nodes.begin(), nodes.end(), next), next);
      if (chain->softmax != pattern::none && nodes.size() == chain->softmax + 1) continue;
      // What is updated may follow from the product in another way, too.
      const bool keeps = chain->epilogue.keeps_product && nodes.size() > 1;
      if (keeps && nodes.size() < chain->nodes.size()) continue;
      if (keeps && !convexity) convexity.emplace(graph);
      if (keeps && !convexity->is_convex(nodes)) continue;
      const bool is_product = chain->softmax != pattern::none && nodes.size() <= chain->softmax;
      const auto kind = static_cast<std::uint32_t>(is_product ? LibraryOp::matmul : chain->op);
      if (out.add(nodes, prices.of(nodes), kind, std::span(chain->nodes.data(), nodes.size()))) continue;
      out.set_full(name());
      return {};
    }
  }
  return {};
}

void LibraryTiles::describe(const Graph& graph, const CandidateList& list, std::size_t i,
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

std::string LibraryTiles::name_of(const CandidateList& list, std::size_t i) const {
  return std::string(word(static_cast<LibraryOp>(list.kind(i))));
}
