// Building a Graph, node by node. Nodes may be named as inputs before they are described: a file lists them
// in any order.
#pragma once

#include <functional>
#include <unordered_map>

#include "tessera/base/hash.h"
#include "tessera/base/result.h"
#include "tessera/pattern/graph.h"

namespace tessera::pattern {

/// What a node is, except for what it is connected to.
struct NodeParts {
  std::string id = {};
  std::string op = {};  ///< taken as it is: the readers of files translate spellings
  Attributes attributes = {};
  std::vector<ValueType> results = {ValueType{}};
  bool is_opaque = false;
  double operations = 0;  ///< what it computes (Graph::operations)
};

class GraphBuilder {
 public:
  explicit GraphBuilder(ir::OpFactsRef facts);

  /// A new external. Its name is for people; two calls make two values.
  ValueId add_external(External external, ValueType type = {});
  /// The external input of that name, made if there is none.
  ValueId input(const std::string& name);
  /// The external that is the scalar constant `value`, made if there is none.
  ValueId constant(const AttributeValue& value);

  NodeId add_node(NodeParts parts);
  /// `inputs` in the order of the slots. A call replaces what was set before.
  void set_inputs(NodeId node, std::vector<ValueId> inputs);
  /// `node` needs `value`, but not as an input.
  void add_read(NodeId node, ValueId value);
  /// `node` can only run after `earlier`.
  void add_order(NodeId earlier, NodeId node);
  void set_op(NodeId node, const std::string& op);
  void set_type(ValueId value, ValueType type);
  /// In one call: a node whose inputs are there already. Returns its first result.
  ValueId add(std::string op, std::vector<ValueId> inputs, Attributes attributes = {}, ValueType type = {});

  /// REQUIRES k is below the number of the node's results.
  [[nodiscard]] ValueId result(NodeId node, std::uint32_t k = 0) const { return graph_.result(node, k); }
  void set_output(ValueId value);
  /// Every result of a node that no node consumes becomes an output.
  void set_sinks_as_outputs();
  /// The number of a shape, the same for equal shapes.
  ShapeId shape(const ir::Shape& shape);
  /// Whether a node computes the value.
  [[nodiscard]] bool is_result(ValueId value) const { return graph_.producer(value) != none; }
  [[nodiscard]] std::uint32_t node_count() const { return graph_.node_count(); }
  /// By value: whether it is an output.
  [[nodiscard]] std::vector<bool> output_flags() const;
  [[nodiscard]] const ir::OpFacts& facts() const { return *graph_.facts_; }

  /// Where a node stands in the file or program it comes from, for errors.
  void set_places(std::function<SourceSpan(NodeId)> place_of) { place_of_ = std::move(place_of); }
  /// The graph, or an error that names the nodes of a cycle.
  [[nodiscard]] Result<Graph> build() &&;

 private:
  ShapeId intern_shape(const ir::Shape& shape);
  AttributesId intern(Attributes attributes);
  OpId intern(const std::string& op);
  void index_values();
  void index_ops();
  void index_edges();
  [[nodiscard]] bool is_numbered_in_order() const;
  Result<void> find_order();
  [[nodiscard]] Error describe_cycle() const;
  void measure_paths();

  Graph graph_;
  std::function<SourceSpan(NodeId)> place_of_;
  std::vector<std::vector<ValueId>> inputs_;
  std::vector<std::pair<NodeId, ValueId>> reads_;
  std::vector<std::pair<NodeId, NodeId>> orders_;  ///< earlier, later
  std::unordered_map<std::string, ValueId> named_;
  std::unordered_map<std::string, OpId> ops_;
  std::unordered_multimap<Hash128, ValueId> constants_;
  std::unordered_multimap<Hash128, ShapeId> shapes_;
  /// Shapes of the very same symbols and expressions: most of a function's are, and are found at once.
  std::unordered_multimap<std::uint64_t, std::pair<ir::Shape, ShapeId>> same_shapes_;
  std::unordered_multimap<Hash128, AttributesId> attributes_;
};

}  // namespace tessera::pattern
