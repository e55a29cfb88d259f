#include "tessera/runtime/cuda/product_chain.h"

#include <cmath>

#include "tessera/runtime/cuda/element_text.h"

using namespace tessera;
using namespace tessera::runtime::cuda;
using pattern::Graph;
using pattern::NodeId;
using pattern::ValueId;

namespace {

class ChainGrower {
 public:
  ChainGrower(const Graph& graph, NodeId node) : graph_(graph) { chain_.nodes.push_back(node); }

  std::optional<ProductChain> run() {
    if (!begin()) return std::nullopt;
    while (chain_.finish.activation == Product::Activation::none && extend()) {
    }
    return std::move(chain_);
  }

 private:
  [[nodiscard]] ValueId last() const { return graph_.result(chain_.nodes.back()); }
  [[nodiscard]] const std::string& name(NodeId node) const { return graph_.op_name(graph_.op(node)); }
  [[nodiscard]] bool has_shape(ValueId value) const { return graph_.type(value).shape != pattern::none; }
  [[nodiscard]] const ir::Shape& shape(ValueId value) const { return graph_.shape(graph_.type(value).shape); }

  /// Products of f64 have no such ends in the library.
  bool begin() {
    const NodeId node = chain_.nodes[0];
    if (graph_.is_opaque(node) || graph_.result_count(node) != 1 || name(node) != "matmul") return false;
    const auto dtype = graph_.type(last()).dtype;
    if (dtype != ir::Dtype::f32 && !(dtype && is_half(*dtype))) return false;
    if (!has_shape(last()) || shape(last()).size() < 2) return false;
    for (const ValueId input : graph_.inputs(node))
      if (graph_.type(input).dtype != dtype || !has_shape(input) || shape(input).size() < 2) return false;
    return true;
  }

  bool extend() {
    if (graph_.is_output(last()) || graph_.consumers(last()).size() != 1) return false;
    const NodeId next = graph_.consumers(last())[0];
    if (graph_.is_opaque(next) || graph_.result_count(next) != 1 || !graph_.reads(next).empty()) return false;
    if (graph_.type(graph_.result(next)) != graph_.type(last())) return false;
    if (!take_activation(next) && !take_sum(next) && !take_scale(next) && !take_difference(next))
      return false;
    chain_.nodes.push_back(next);
    return true;
  }

  /// The library's gelu is the one by tanh, by a tanh that has about the precision of 16 bits.
  bool take_activation(NodeId next) {
    Product::Activation& activation = chain_.finish.activation;
    if (name(next) == "relu") activation = Product::Activation::relu;
    if (name(next) == "gelu_tanh" && is_half(*graph_.type(last()).dtype))
      activation = Product::Activation::gelu;
    return activation != Product::Activation::none;
  }

  bool take_sum(NodeId next) {
    const auto inputs = graph_.inputs(next);
    if (name(next) != "add" || inputs.size() != 2 || inputs[0] == inputs[1]) return false;
    const ValueId other = inputs[inputs[0] == last() ? 1 : 0];
    if (graph_.type(other).dtype != graph_.type(last()).dtype || !has_shape(other) || is_number(other))
      return false;
    return take_bias(other) || take_array(other);
  }

  [[nodiscard]] bool is_bare() const { return !chain_.finish.adds_bias && !chain_.finish.adds_array; }

  /// A number that is known. Nothing times 0 would be computed, and infinities not as elsewhere.
  bool take_scale(NodeId next) {
    const auto inputs = graph_.inputs(next);
    if (name(next) != "mul" || inputs.size() != 2 || inputs[0] == inputs[1] || !is_bare()) return false;
    const ValueId other = inputs[inputs[0] == last() ? 1 : 0];
    if (graph_.producer(other) != pattern::none) return false;
    const auto& constant = graph_.external(other).constant;
    const double* number = constant ? std::get_if<double>(&*constant) : nullptr;
    if (number == nullptr || graph_.external(other).kind != pattern::External::Kind::constant) return false;
    const float scale = chain_.finish.scale * static_cast<float>(*number);
    if (!std::isnormal(scale)) return false;
    chain_.finish.scale = scale;
    return true;
  }

  /// What the product is taken from, as weights in a step of training.
  bool take_difference(NodeId next) {
    const auto inputs = graph_.inputs(next);
    if (name(next) != "sub" || inputs.size() != 2 || inputs[1] != last() || inputs[0] == last() ||
        !is_bare() || !has_shape(inputs[0]) || is_number(inputs[0]) || !take_array(inputs[0]))
      return false;
    chain_.finish.scale = -chain_.finish.scale;
    return true;
  }

  /// Numbers of the host lie in no memory of the device.
  [[nodiscard]] bool is_number(ValueId value) const {
    return graph_.producer(value) == pattern::none &&
           graph_.external(value).kind == pattern::External::Kind::parameter;
  }

  /// All sizes but the last are 1.
  bool take_bias(ValueId other) {
    const ir::Shape &given = shape(other), &result = shape(last());
    if (chain_.finish.adds_bias || given.empty() || given.back() != result.back()) return false;
    for (std::size_t axis = 0; axis + 1 < given.size(); ++axis)
      if (given[axis] != ir::Dim(1)) return false;
    chain_.finish.adds_bias = true;
    chain_.bias = other;
    return true;
  }

  bool take_array(ValueId other) {
    if (chain_.finish.adds_array || graph_.type(other) != graph_.type(last())) return false;
    chain_.finish.adds_array = true;
    chain_.added = other;
    return true;
  }

  const Graph& graph_;
  ProductChain chain_;
};

}  // namespace

std::optional<ProductChain> runtime::cuda::product_chain(const Graph& graph, NodeId node) {
  return ChainGrower(graph, node).run();
}

std::optional<ProductChain> runtime::cuda::product_chain(const Graph& graph) {
  for (const NodeId node : graph.order())
    if (auto chain = product_chain(graph, node); chain && chain->nodes.size() == graph.node_count())
      return chain;
  return std::nullopt;
}
