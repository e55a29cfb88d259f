#include "tessera/pattern/graph_builder.h"

#include <algorithm>
#include <numeric>
#include <queue>

#include "tessera/base/check.h"
#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::pattern;

namespace {

/// At most so many nodes of a cycle are named.
constexpr std::size_t shown_cycle_nodes = 8;

Hash128 value_hash(const AttributeValue& value) {
  Hasher hasher;
  add_to_hash(hasher, value);
  return hasher.finish();
}

/// The number under which an equal item is in `index`, or a new one.
template <class Number, class IsSame, class Add>
Number intern_in(std::unordered_multimap<Hash128, Number>& index, const Hash128& hash, IsSame is_same,
                 Add add) {
  const auto [first, last] = index.equal_range(hash);
  for (auto at = first; at != last; ++at)
    if (is_same(at->second)) return at->second;
  const Number number = add();
  index.emplace(hash, number);
  return number;
}

/// A number, or the address of an expression.
std::uint64_t object_word(const ir::Dim& dim) {
  return dim.is_constant() ? static_cast<std::uint64_t>(dim.value())
                           : reinterpret_cast<std::uintptr_t>(dim.expr().get());
}

std::uint64_t object_hash(const ir::Shape& shape) {
  Hasher hasher(shape.size());
  for (const ir::Dim& dim : shape) hasher.add(object_word(dim));
  return hasher.finish().low;
}

bool has_same_objects(const ir::Shape& a, const ir::Shape& b) {
  return std::ranges::equal(a, b, [](const ir::Dim& left, const ir::Dim& right) {
    return left.is_constant() == right.is_constant() && object_word(left) == object_word(right);
  });
}

void sort_without_repeats(std::vector<NodeId>& nodes) {
  std::ranges::sort(nodes);
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
}

}  // namespace

GraphBuilder::GraphBuilder(ir::OpFactsRef facts) { graph_.facts_ = std::move(facts); }

ValueId GraphBuilder::add_external(External external, ValueType type) {
  const ValueId value = graph_.value_count();
  graph_.values_.push_back({none, static_cast<std::uint32_t>(graph_.externals_.size()), type, false});
  graph_.externals_.push_back(std::move(external));
  return value;
}

ValueId GraphBuilder::input(const std::string& name) {
  const auto [at, is_new] = named_.try_emplace(name, none);
  if (is_new) at->second = add_external({.name = name});
  return at->second;
}

ValueId GraphBuilder::constant(const AttributeValue& value) {
  const auto is_same = [&](ValueId known) { return same_value(*graph_.external(known).constant, value); };
  const auto add = [&] {
    std::string name;
    std::visit(
        [&](const auto& held) {
          if constexpr (requires { append_text(name, held); }) append_text(name, held);
        },
        value);
    return add_external({.name = std::move(name), .kind = External::Kind::constant, .constant = value});
  };
  return intern_in(constants_, value_hash(value), is_same, add);
}

ShapeId GraphBuilder::shape(const ir::Shape& shape) {
  const std::uint64_t hash = object_hash(shape);
  const auto [first, last] = same_shapes_.equal_range(hash);
  for (auto at = first; at != last; ++at)
    if (has_same_objects(at->second.first, shape)) return at->second.second;
  const ShapeId number = intern_shape(shape);
  same_shapes_.emplace(hash, std::pair(shape, number));
  return number;
}

ShapeId GraphBuilder::intern_shape(const ir::Shape& shape) {
  return intern_in(
      shapes_, value_hash(AttributeValue(shape)),
      [&](ShapeId known) { return graph_.shapes_[known] == shape; },
      [&] {
        graph_.shapes_.push_back(shape);
        return static_cast<ShapeId>(graph_.shapes_.size() - 1);
      });
}

AttributesId GraphBuilder::intern(Attributes attributes) {
  const Hash128 hash = pattern::hash_of(attributes);
  const auto is_same = [&](AttributesId known) {
    return same_attributes(graph_.attributes_[known], attributes);
  };
  return intern_in(attributes_, hash, is_same, [&] {
    graph_.attributes_.push_back(std::move(attributes));
    return static_cast<AttributesId>(graph_.attributes_.size() - 1);
  });
}

OpId GraphBuilder::intern(const std::string& op) {
  const auto [at, is_new] = ops_.try_emplace(op, static_cast<OpId>(graph_.op_names_.size()));
  if (is_new) {
    graph_.op_names_.push_back(op);
    graph_.is_commutative_.push_back(graph_.facts_->has(op, trait::commutative));
  }
  return at->second;
}

NodeId GraphBuilder::add_node(NodeParts parts) {
  const NodeId node = graph_.node_count();
  graph_.ids_.push_back(std::move(parts.id));
  graph_.ops_.push_back(intern(parts.op));
  graph_.is_opaque_.push_back(parts.is_opaque);
  graph_.attributes_of_.push_back(intern(std::move(parts.attributes)));
  graph_.first_result_.push_back(graph_.value_count());
  graph_.result_count_.push_back(static_cast<std::uint32_t>(parts.results.size()));
  graph_.operations_.push_back(parts.operations);
  std::uint32_t k = 0;
  for (const ValueType& type : parts.results) graph_.values_.push_back({node, k++, type, false});
  inputs_.emplace_back();
  return node;
}

void GraphBuilder::set_inputs(NodeId node, std::vector<ValueId> inputs) { inputs_[node] = std::move(inputs); }
void GraphBuilder::add_read(NodeId node, ValueId value) { reads_.emplace_back(node, value); }
void GraphBuilder::add_order(NodeId earlier, NodeId node) { orders_.emplace_back(earlier, node); }
void GraphBuilder::set_op(NodeId node, const std::string& op) { graph_.ops_[node] = intern(op); }
void GraphBuilder::set_type(ValueId value, ValueType type) { graph_.values_[value].type = type; }
void GraphBuilder::set_output(ValueId value) { graph_.values_[value].is_output = true; }

std::vector<bool> GraphBuilder::output_flags() const {
  std::vector<bool> out;
  for (const auto& value : graph_.values_) out.push_back(value.is_output);
  return out;
}

ValueId GraphBuilder::add(std::string op, std::vector<ValueId> inputs, Attributes attributes,
                          ValueType type) {
  const NodeId node = add_node(
      {.id = cat(node_count()), .op = std::move(op), .attributes = std::move(attributes), .results = {type}});
  set_inputs(node, std::move(inputs));
  return result(node);
}

void GraphBuilder::set_sinks_as_outputs() {
  std::vector<bool> has_consumer(node_count(), false);
  const auto mark = [&](ValueId value) {
    if (graph_.producer(value) != none) has_consumer[graph_.producer(value)] = true;
  };
  for (const auto& inputs : inputs_)
    for (ValueId value : inputs) mark(value);
  for (const auto& [node, value] : reads_) mark(value);
  for (NodeId node = 0; node < node_count(); ++node)
    for (std::uint32_t k = 0; !has_consumer[node] && k < graph_.result_count(node); ++k)
      set_output(result(node, k));
}

void GraphBuilder::index_values() {
  std::size_t total = 0;
  for (const auto& inputs : inputs_) total += inputs.size();
  graph_.inputs_.reserve(node_count(), total);
  for (const auto& inputs : inputs_) graph_.inputs_.append(inputs);
  graph_.reads_ = Rows<ValueId>::from_pairs(node_count(), [&](auto visit) {
    for (const auto& [node, value] : reads_) visit(node, value);
  });
  graph_.consumers_ = Rows<NodeId>::from_pairs(graph_.value_count(), [&](auto visit) {
    std::vector<NodeId> last(graph_.value_count(), none);
    const auto once = [&](NodeId node, ValueId value) {
      if (std::exchange(last[value], node) != node) visit(value, node);
    };
    for (NodeId node = 0; node < node_count(); ++node) {
      for (ValueId value : graph_.inputs(node)) once(node, value);
      for (ValueId value : graph_.reads(node)) once(node, value);
    }
  });
}

void GraphBuilder::index_ops() {
  graph_.nodes_of_ = Rows<NodeId>::from_pairs(graph_.op_count(), [&](auto visit) {
    for (NodeId node = 0; node < node_count(); ++node)
      if (!graph_.is_opaque(node)) visit(graph_.op(node), node);
  });
}

void GraphBuilder::index_edges() {
  const Rows<NodeId> earlier = Rows<NodeId>::from_pairs(node_count(), [&](auto visit) {
    for (const auto& [before, after] : orders_) visit(after, before);
  });
  graph_.predecessors_.reserve(node_count(), graph_.inputs_.item_count());
  std::vector<NodeId> row;
  for (NodeId node = 0; node < node_count(); ++node) {
    row.assign(earlier[node].begin(), earlier[node].end());
    for (const auto values : {graph_.inputs(node), graph_.reads(node)})
      for (ValueId value : values)
        if (graph_.producer(value) != none) row.push_back(graph_.producer(value));
    sort_without_repeats(row);
    graph_.predecessors_.append(row);
  }
  graph_.successors_ = Rows<NodeId>::from_pairs(node_count(), [&](auto visit) {
    for (NodeId node = 0; node < node_count(); ++node)
      for (NodeId before : graph_.predecessors(node)) visit(before, node);
  });
}

bool GraphBuilder::is_numbered_in_order() const {
  for (NodeId node = 0; node < node_count(); ++node) {
    const auto before = graph_.predecessors(node);
    if (!before.empty() && before.back() >= node) return false;
  }
  return true;
}

Result<void> GraphBuilder::find_order() {
  if (is_numbered_in_order()) {
    graph_.order_.resize(node_count());
    std::iota(graph_.order_.begin(), graph_.order_.end(), 0U);
    graph_.position_ = graph_.order_;
    return {};
  }
  std::vector<std::uint32_t> waits_for(node_count());
  std::priority_queue<NodeId, std::vector<NodeId>, std::greater<>> ready;
  for (NodeId node = 0; node < node_count(); ++node) {
    waits_for[node] = static_cast<std::uint32_t>(graph_.predecessors(node).size());
    if (waits_for[node] == 0) ready.push(node);
  }
  graph_.position_.assign(node_count(), none);
  graph_.order_.reserve(node_count());
  while (!ready.empty()) {
    const NodeId node = ready.top();
    ready.pop();
    graph_.position_[node] = static_cast<std::uint32_t>(graph_.order_.size());
    graph_.order_.push_back(node);
    for (NodeId next : graph_.successors(node))
      if (--waits_for[next] == 0) ready.push(next);
  }
  if (graph_.order_.size() < node_count()) return describe_cycle();
  return {};
}

/// REQUIRES some nodes have no position. Walks back from one of them along nodes without one until it meets a
/// node again.
Error GraphBuilder::describe_cycle() const {
  NodeId node = static_cast<NodeId>(std::ranges::find(graph_.position_, none) - graph_.position_.begin());
  std::vector<bool> seen(node_count(), false);
  std::vector<NodeId> path;
  while (!seen[node]) {
    seen[node] = true;
    path.push_back(node);
    const auto before = graph_.predecessors(node);
    node = *std::ranges::find_if(before, [&](NodeId other) { return graph_.position_[other] == none; });
  }
  path.erase(path.begin(), std::ranges::find(path, node));
  path.push_back(node);
  std::ranges::reverse(path);
  std::string text;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (i == shown_cycle_nodes && path.size() > shown_cycle_nodes + 2) {
      text += " -> …";
      i = path.size() - 1;
    }
    text += cat(i == 0 ? "" : " -> ", quote(shortened(graph_.id(path[i]), 60)));
  }
  Error error(ErrorCode::cycle, cat("the nodes form a cycle: ", text));
  return place_of_ ? std::move(error).at(place_of_(path[0])) : std::move(error);
}

void GraphBuilder::measure_paths() {
  graph_.depth_.assign(node_count(), 0);
  graph_.height_.assign(node_count(), 0);
  for (NodeId node : graph_.order_)
    for (NodeId before : graph_.predecessors(node))
      graph_.depth_[node] = std::max(graph_.depth_[node], graph_.depth_[before] + 1);
  for (std::size_t i = graph_.order_.size(); i-- > 0;) {
    const NodeId node = graph_.order_[i];
    for (NodeId after : graph_.successors(node))
      graph_.height_[node] = std::max(graph_.height_[node], graph_.height_[after] + 1);
  }
}

Result<Graph> GraphBuilder::build() && {
  index_values();
  index_ops();
  index_edges();
  TESSERA_TRY(find_order());
  measure_paths();
  graph_.op_index_ = std::move(ops_);
  return std::move(graph_);
}
