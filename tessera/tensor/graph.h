// Looking at what was recorded: nodes, their inputs with slots, order, pictures.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tessera/tensor/tensor.h"

namespace tessera {

/// Names a node for as long as the process lives, through all merges.
struct NodeId {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  bool operator==(const NodeId&) const = default;
};

/// What is known of one node.
struct NodeInfo {
  NodeId id;
  std::string op;  ///< empty for a leaf
  std::string attributes;
  Dtype dtype = Dtype::f32;
  Shape shape;
  std::vector<NodeId> inputs;  ///< by slot; a scalar operand has the id 0
  bool evaluated = false;
  std::string block;
  std::string file;
  std::uint32_t line = 0;
};

/// The graph a tensor belongs to: everything that was recorded for it, and for the tensors whose graphs were
/// looked at and then joined with it. As long as a Graph lives, evaluation keeps the nodes' inputs. Copies
/// share.
class Graph {
 public:
  /// Whether two graphs are one: something combined them.
  [[nodiscard]] bool same_as(const Graph& other) const;
  [[nodiscard]] std::shared_ptr<engine::Engine> engine() const;
  /// Joins two graphs; both handles name the joined one. Joining twice changes nothing.
  void merge(const Graph& other, Here here = {});

  /// In an order in which each node stands after its inputs (Kahn's algorithm, O(nodes + edges)).
  [[nodiscard]] std::vector<NodeInfo> nodes() const;
  [[nodiscard]] std::vector<NodeId> topological_order() const;
  /// One node. Throws if there is none of that id. The first lookup after the graph has changed walks over
  /// it, the others do not.
  [[nodiscard]] NodeInfo node(NodeId id, Here here = {}) const;
  [[nodiscard]] std::vector<NodeId> inputs(NodeId id, Here here = {}) const { return node(id, here).inputs; }
  /// The value of a node as a tensor. Throws if there is none of that id.
  [[nodiscard]] Tensor tensor(NodeId id, Here here = {}) const;
  /// The values of all nodes, in topological order.
  [[nodiscard]] std::vector<Tensor> tensors() const;
  /// The nodes no other node of the graph uses.
  [[nodiscard]] std::vector<NodeId> outputs() const;
  [[nodiscard]] std::size_t size() const;

  /// Graphviz; `dot -Tsvg FILE` draws it.
  [[nodiscard]] std::string to_dot() const;
  void to_dot(const std::string& path, Here here = {}) const;
  /// A line per node.
  [[nodiscard]] std::string to_text() const;

 private:
  friend class Tensor;
  struct State;
  explicit Graph(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

[[nodiscard]] NodeId node_id(const Tensor& tensor, Here here = {});
/// One line: op, attributes, type, whether it is evaluated, where it was recorded.
[[nodiscard]] std::string to_text(const NodeInfo& node);

}  // namespace tessera
