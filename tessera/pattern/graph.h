// The graph that is tiled: ops by interned name, values with identity, and nothing of where they came from.
//
// A node is one op with ordered inputs. A value is a result of a node or an external: something computed
// before the graph runs (an input, a parameter, a constant). Equal externals are one value, so "the same
// input twice" can be asked. Besides its inputs a node may read values that are no operands (the sizes in a
// shape, what a region captures) and may have to run after other nodes; both count for what escapes from a
// tile and for cycles, but no pattern sees them.
//
// Graphs come from graph_builder.h, graph_json.h, graph_text.h or graph_function.h; they are immutable.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tessera/ir/dtype.h"
#include "tessera/ir/expr.h"
#include "tessera/pattern/attributes.h"
#include "tessera/pattern/rows.h"
#include "tessera/pattern/traits.h"

namespace tessera::pattern {

using NodeId = std::uint32_t;   ///< nodes are numbered as they were added; in a function, as its statements
using ValueId = std::uint32_t;  ///< externals and results share one numbering
using OpId = std::uint32_t;     ///< one number for each distinct op name
using ShapeId = std::uint32_t;  ///< one number for each distinct shape
using AttributesId = std::uint32_t;  ///< one number for each distinct set of attributes

inline constexpr std::uint32_t none = 0xffffffff;

/// What is known of a value's type; both parts may be unknown.
struct ValueType {
  std::optional<ir::Dtype> dtype = {};
  ShapeId shape = none;

  bool operator==(const ValueType&) const = default;
};

struct External {
  enum class Kind : std::uint8_t {
    input,      ///< known only by name
    parameter,  ///< a scalar that changes from run to run: equal only to itself
    constant,   ///< known now; equal constants are one external
  };
  std::string name;
  Kind kind = Kind::input;
  std::optional<AttributeValue> constant = {};  ///< the value of a constant scalar
  ir::ExprRef expr = {};                        ///< what it is in the function, if the graph came from one
};

class Graph {
 public:
  Graph(Graph&&) = default;
  Graph& operator=(Graph&&) = default;

  [[nodiscard]] std::uint32_t node_count() const { return static_cast<std::uint32_t>(ops_.size()); }
  [[nodiscard]] std::uint32_t value_count() const { return static_cast<std::uint32_t>(values_.size()); }
  [[nodiscard]] std::uint32_t op_count() const { return static_cast<std::uint32_t>(op_names_.size()); }

  /// The caller's name for the node.
  [[nodiscard]] const std::string& id(NodeId node) const { return ids_[node]; }
  [[nodiscard]] OpId op(NodeId node) const { return ops_[node]; }
  /// An opaque node is never part of a pattern's match: a region, a tuple.
  [[nodiscard]] bool is_opaque(NodeId node) const { return is_opaque_[node]; }
  [[nodiscard]] std::span<const ValueId> inputs(NodeId node) const { return inputs_[node]; }
  /// Values it needs that are no inputs.
  [[nodiscard]] std::span<const ValueId> reads(NodeId node) const { return reads_[node]; }
  [[nodiscard]] const Attributes& attributes(NodeId node) const { return attributes_[attributes_of_[node]]; }
  [[nodiscard]] AttributesId attributes_id(NodeId node) const { return attributes_of_[node]; }
  [[nodiscard]] std::uint32_t result_count(NodeId node) const { return result_count_[node]; }
  /// What it computes, in operations on single elements, for prices; 0 where nobody has said.
  [[nodiscard]] double operations(NodeId node) const { return operations_[node]; }
  /// REQUIRES k < result_count(node).
  [[nodiscard]] ValueId result(NodeId node, std::uint32_t k = 0) const { return first_result_[node] + k; }

  /// The node that computes the value, or `none` for an external.
  [[nodiscard]] NodeId producer(ValueId value) const { return values_[value].producer; }
  /// Which of its producer's results it is.
  [[nodiscard]] std::uint32_t result_index(ValueId value) const { return values_[value].index; }
  /// REQUIRES producer(value) == none.
  [[nodiscard]] const External& external(ValueId value) const { return externals_[values_[value].index]; }
  [[nodiscard]] const ValueType& type(ValueId value) const { return values_[value].type; }
  [[nodiscard]] const ir::Shape& shape(ShapeId shape) const { return shapes_[shape]; }
  /// Somebody outside the graph gets the value.
  [[nodiscard]] bool is_output(ValueId value) const { return values_[value].is_output; }
  /// The nodes that have it as an input or read it, ascending, each once.
  [[nodiscard]] std::span<const NodeId> consumers(ValueId value) const { return consumers_[value]; }
  /// "id" or "id:k" of a result, the name of an external.
  [[nodiscard]] std::string value_name(ValueId value) const;

  [[nodiscard]] const std::string& op_name(OpId op) const { return op_names_[op]; }
  [[nodiscard]] OpId find_op(const std::string& name) const;  ///< `none` if no node has it
  [[nodiscard]] bool is_commutative(OpId op) const { return is_commutative_[op]; }
  [[nodiscard]] const ir::OpFactsRef& facts() const { return facts_; }
  [[nodiscard]] bool has_trait(OpId op, std::string_view trait) const {
    return facts_->has(op_names_[op], trait);
  }
  /// The nodes with that op that are not opaque, ascending.
  [[nodiscard]] std::span<const NodeId> nodes_of(OpId op) const { return nodes_of_[op]; }

  /// The nodes that must run before and can only run after a node, ascending, each once.
  [[nodiscard]] std::span<const NodeId> predecessors(NodeId node) const { return predecessors_[node]; }
  [[nodiscard]] std::span<const NodeId> successors(NodeId node) const { return successors_[node]; }

  /// How many pairs of a node and a predecessor there are.
  [[nodiscard]] std::size_t edge_count() const { return predecessors_.item_count(); }

  /// The nodes so that predecessors come first; as numbered, if they are numbered so.
  [[nodiscard]] std::span<const NodeId> order() const { return order_; }
  [[nodiscard]] std::uint32_t position(NodeId node) const { return position_[node]; }
  /// The length of the longest path that ends at the node, and of the longest that begins there.
  [[nodiscard]] std::uint32_t depth(NodeId node) const { return depth_[node]; }
  [[nodiscard]] std::uint32_t height(NodeId node) const { return height_[node]; }

 private:
  friend class GraphBuilder;
  Graph() = default;

  struct ValueRow {
    NodeId producer = none;
    std::uint32_t index = 0;  ///< of the result, or in externals_
    ValueType type;
    bool is_output = false;
  };

  std::vector<std::string> ids_;
  std::vector<OpId> ops_;
  std::vector<bool> is_opaque_;
  Rows<ValueId> inputs_;
  Rows<ValueId> reads_;
  std::vector<AttributesId> attributes_of_;
  std::vector<Attributes> attributes_;
  std::vector<ValueId> first_result_;
  std::vector<std::uint32_t> result_count_;
  std::vector<double> operations_;

  std::vector<ValueRow> values_;
  std::vector<External> externals_;
  std::vector<ir::Shape> shapes_;
  Rows<NodeId> consumers_;

  ir::OpFactsRef facts_;
  std::vector<std::string> op_names_;
  std::unordered_map<std::string, OpId> op_index_;  ///< only looked up
  std::vector<bool> is_commutative_;
  Rows<NodeId> nodes_of_;

  Rows<NodeId> predecessors_;
  Rows<NodeId> successors_;
  std::vector<NodeId> order_;
  std::vector<std::uint32_t> position_;
  std::vector<std::uint32_t> depth_;
  std::vector<std::uint32_t> height_;
};

}  // namespace tessera::pattern
