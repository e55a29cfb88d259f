#include "tessera/pattern/fusion_groups.h"

#include <numeric>

using namespace tessera::pattern;

namespace {

enum class LoopKind : std::uint8_t { no_loop, over_result, over_input };

LoopKind loop_kind(const Graph& graph, OpId op) {
  for (const std::string_view trait : {trait::elementwise, trait::indexed, trait::broadcast})
    if (graph.has_trait(op, trait)) return LoopKind::over_result;
  return graph.has_trait(op, trait::reduction) ? LoopKind::over_input : LoopKind::no_loop;
}

/// The shape that the node's loop runs over; `none` if it is not known.
ShapeId iteration_space(const Graph& graph, NodeId node, LoopKind kind) {
  if (kind == LoopKind::over_result)
    return graph.result_count(node) == 0 ? none : graph.type(graph.result(node)).shape;
  return graph.inputs(node).empty() ? none : graph.type(graph.inputs(node)[0]).shape;
}

/// Which nodes are joined so far.
class Joined {
 public:
  explicit Joined(std::uint32_t nodes) : parent_(nodes) { std::iota(parent_.begin(), parent_.end(), 0U); }
  NodeId find(NodeId node) {
    while (parent_[node] != node) node = parent_[node] = parent_[parent_[node]];
    return node;
  }
  void join(NodeId a, NodeId b) { parent_[find(a)] = find(b); }

 private:
  std::vector<NodeId> parent_;
};

}  // namespace

FusionGroups tessera::pattern::find_fusion_groups(const Graph& graph) {
  std::vector<LoopKind> kinds;
  for (OpId op = 0; op < graph.op_count(); ++op) kinds.push_back(loop_kind(graph, op));
  FusionGroups out;
  std::vector<ShapeId> spaces(graph.node_count(), none);
  for (NodeId node = 0; node < graph.node_count(); ++node) {
    const LoopKind kind = kinds[graph.op(node)];
    if (kind == LoopKind::no_loop || graph.is_opaque(node)) continue;
    spaces[node] = iteration_space(graph, node, kind);
    if (spaces[node] == none) ++out.without_shape;
  }
  Joined joined(graph.node_count());
  for (NodeId node = 0; node < graph.node_count(); ++node)
    for (NodeId before : graph.predecessors(node))
      if (spaces[node] != none && spaces[node] == spaces[before]) joined.join(node, before);
  out.group_of.assign(graph.node_count(), none);
  std::vector<std::uint32_t> number(graph.node_count(), none);
  for (NodeId node : graph.order()) {
    if (spaces[node] == none) continue;
    std::uint32_t& group = number[joined.find(node)];
    if (group == none) {
      group = static_cast<std::uint32_t>(out.groups.size());
      out.groups.emplace_back();
    }
    out.group_of[node] = group;
    out.groups[group].push_back(node);
  }
  return out;
}
