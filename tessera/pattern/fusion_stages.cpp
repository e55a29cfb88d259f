#include "tessera/pattern/fusion_stages.h"

#include <algorithm>

using namespace tessera::pattern;

namespace {

class Stages {
 public:
  Stages(const Graph& graph, const FusionGroups& groups)
      : graph_(graph), groups_(groups), stage_(graph.node_count(), 0), is_taken_(graph.node_count(), false) {}

  void count(StageOrder order) {
    const auto nodes = graph_.order();
    const bool is_early = order == StageOrder::as_early_as_possible;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const NodeId node = is_early ? nodes[i] : nodes[nodes.size() - 1 - i];
      for (NodeId other : is_early ? graph_.predecessors(node) : graph_.successors(node))
        stage_[node] = std::max(stage_[node], stage_[other] + (is_one_group(node, other) ? 0 : 1));
    }
  }

  std::vector<std::vector<NodeId>> parts() {
    std::vector<std::vector<NodeId>> out;
    for (NodeId node : graph_.order()) {
      if (groups_.group_of[node] == none || is_taken_[node]) continue;
      std::vector<NodeId> part = part_from(node);
      if (part.size() > 1) out.push_back(std::move(part));
    }
    return out;
  }

 private:
  [[nodiscard]] bool is_one_group(NodeId a, NodeId b) const {
    return groups_.group_of[a] != none && groups_.group_of[a] == groups_.group_of[b];
  }

  std::vector<NodeId> part_from(NodeId node) {
    std::vector<NodeId> part{node};
    is_taken_[node] = true;
    for (std::size_t i = 0; i < part.size(); ++i)
      for (const auto around : {graph_.predecessors(part[i]), graph_.successors(part[i])})
        for (NodeId other : around) {
          if (is_taken_[other] || !is_one_group(node, other) || stage_[other] != stage_[node]) continue;
          is_taken_[other] = true;
          part.push_back(other);
        }
    std::ranges::sort(part);
    return part;
  }

  const Graph& graph_;
  const FusionGroups& groups_;
  std::vector<std::uint32_t> stage_;
  std::vector<bool> is_taken_;
};

}  // namespace

std::vector<std::vector<NodeId>> tessera::pattern::find_stages(const Graph& graph, const FusionGroups& groups,
                                                               StageOrder order) {
  Stages stages(graph, groups);
  stages.count(order);
  return stages.parts();
}
