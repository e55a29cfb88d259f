#include "tessera/tensor/trace.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "tessera/base/text.h"
#include "tessera/engine/node_to_ir.h"
#include "tessera/op/ir_builder.h"
#include "tessera/tensor/backward.h"
#include "tessera/tensor/call.h"

using namespace tessera;
using namespace tessera::detail;
using engine::Node;
using engine::NodeRef;
using op::Value;
using op::Values;

namespace {

struct TraceScope {
  TraceScope() { ++engine::thread_state.trace_depth; }
  ~TraceScope() { --engine::thread_state.trace_depth; }
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;
};

ir::ExprRef number(engine::ScalarBits bits, Dtype dtype) {
  if (ir::is_float(dtype)) return ir::float_const(bits.as_float(), dtype);
  if (dtype == Dtype::boolean) return ir::bool_const(bits.as_integer() != 0);
  return ir::int_const(bits.as_integer(), dtype);
}

/// Writes recorded nodes as statements.
class NodeWriter {
 public:
  NodeWriter(op::IrBuilder& builder, autodiff::Rules& rules) : builder_(builder), rules_(rules) {}

  void bind(const Node* node, Value value) { values_[node] = {value}; }

  void write(const Node& node) {
    if (node.is(Node::is_result)) {
      values_[&node] = {values_.at(node.inputs[0])[node.extra->result]};
      return;
    }
    builder_.at(engine::span_of(node));
    const bool tracks = !node.is(Node::no_gradient);
    Values inputs;
    std::size_t scalars = 0;
    for (std::size_t i = 0; i < node.input_count; ++i) {
      if (const Node* input = node.input(i)) {
        inputs.push_back(tracks ? value(input) : values_.at(input)[0]);
        continue;
      }
      const Dtype dtype = engine::scalar_dtype_of(node, i);
      inputs.push_back(builder_.import(number(node.scalar_at(scalars++), dtype), {dtype, {}}));
    }
    values_[&node] = call(node, inputs);
    value_or_throw(builder_.status());
  }

  /// For a use that gradients flow back from.
  [[nodiscard]] Value value(const Node* node) {
    const Value found = values_.at(node)[0];
    if (!node->is(Node::no_gradient) || !ir::is_float(node->dtype)) return found;
    Value& stopped = stopped_[node];
    if (!stopped) stopped = op::unary("stop_gradient", found);
    return stopped;
  }

 private:
  Values call(const Node& node, const Values& inputs) {
    if (node.extra != nullptr && node.extra->function) {
      rules_.add(rules_of(node));
      return engine::append_invoke(builder_, node, node.extra->function, inputs);
    }
    if (node.extra != nullptr && node.extra->custom) return custom(node, inputs);
    return builder_.call_all(node.card->name, inputs, node.attributes());
  }

  Values custom(const Node& node, const Values& inputs) {
    const auto& rule = static_cast<const CustomRule&>(*node.extra->custom);
    std::vector<std::size_t> wrt;
    for (std::size_t i = 1; i <= rule.arguments; ++i)
      if (ir::is_float(inputs[i].dtype())) wrt.push_back(i);
    rules_.add(rule.rules);
    rules_.set_gradient(rule.function, rule.gradient, std::move(wrt));
    return engine::append_invoke(builder_, node, rule.function, inputs);
  }

  op::IrBuilder& builder_;
  autodiff::Rules& rules_;
  std::unordered_map<const Node*, Values> values_;
  std::unordered_map<const Node*, Value> stopped_;  ///< where no gradient flows back
};

}  // namespace

const autodiff::Rules& tessera::detail::rules_of(const Node& call) {
  static const auto& none = *new autodiff::Rules;  // never destroyed
  const auto* rules = static_cast<const RegionRules*>(call.extra->custom.get());
  return rules == nullptr ? none : rules->rules;
}

Trace::Trace(const std::shared_ptr<engine::Engine>& engine, const op::ValueTypes& parameters,
             const Body& body, Here here)
    : first_id_(engine::node_numbers.next()) {
  const TraceScope scope;
  for (const op::ValueType& type : parameters)
    parameters_.push_back(Tensor::adopt(engine::make_placeholder(engine, type, caller_of(here))));
  results_ = body(parameters_);
  for (std::size_t i = 0; i < results_.size(); ++i)
    if (results_[i].is_empty()) fail(here, cat("result ", i, " of a region is an empty tensor"));
}

/// Ids grow with time on one thread, and only this thread traces what its body records. A stored tensor is a
/// capture, wherever it was made.
bool Trace::is_inside(const Node* node) const {
  return node->is(Node::traced) && node->id >= first_id_ && !node->is_stored();
}

std::vector<Node*> Trace::order() const {
  std::vector<Node*> out;
  std::unordered_set<const Node*> seen;
  std::vector<std::pair<Node*, bool>> stack;
  for (const Tensor& result : results_) stack.emplace_back(result.node(), false);
  while (!stack.empty()) {
    auto [node, below_done] = stack.back();
    stack.pop_back();
    if (below_done) {
      out.push_back(node);
      continue;
    }
    if (!seen.insert(node).second) continue;
    stack.emplace_back(node, true);
    if (!is_inside(node)) continue;
    for (std::size_t i = node->input_count; i-- > 0;)
      if (Node* input = node->input(i)) stack.emplace_back(input, false);
  }
  return out;
}

void Trace::add_captures(std::vector<NodeRef>& captures) const {
  for (Node* node : order()) {
    if (is_inside(node)) continue;
    const bool known =
        std::any_of(captures.begin(), captures.end(), [&](const NodeRef& c) { return c.get() == node; });
    if (!known) captures.push_back(NodeRef::share(node));
  }
}

ir::FunctionRef Trace::function(std::string name, std::span<const NodeRef> captures,
                                autodiff::Rules& rules) const {
  op::IrBuilder builder;
  NodeWriter writer(builder, rules);
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    writer.bind(parameters_[i].node(), builder.parameter(cat("x", i), parameters_[i].node()->type()));
  for (std::size_t i = 0; i < captures.size(); ++i)
    writer.bind(captures[i].get(), builder.parameter(cat("c", i), captures[i]->type()));
  for (const Node* node : order())
    if (is_inside(node) && !node->is(Node::placeholder)) writer.write(*node);
  Values results;
  for (const Tensor& result : results_) results.push_back(writer.value(result.node()));
  return value_or_throw(builder.function(std::move(name), results));
}
