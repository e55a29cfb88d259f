#include "tessera/runtime/cpu/library_chain.h"

#include <algorithm>
#include <cmath>

#include "tessera/op/catalogue.h"
#include "tessera/runtime/cpu/epilogue_function.h"

using namespace tessera;
using namespace tessera::runtime::cpu;
using pattern::Graph;
using pattern::NodeId;
using pattern::ValueId;

namespace {

struct NamedOp {
  std::string_view name;
  LibraryOp op;
};
constexpr NamedOp named_ops[] = {{"matmul", LibraryOp::matmul},
                                 {"conv", LibraryOp::convolution},
                                 {"max_pool", LibraryOp::max_pool},
                                 {"avg_pool", LibraryOp::avg_pool}};

struct NamedActivation {
  std::string_view name;
  Activation activation;
};
constexpr NamedActivation activations[] = {{"relu", Activation::relu},
                                           {"tanh", Activation::tanh},
                                           {"sigmoid", Activation::sigmoid},
                                           {"gelu", Activation::gelu_erf},
                                           {"gelu_tanh", Activation::gelu_tanh},
                                           {"silu", Activation::silu},
                                           {"hard_swish", Activation::hard_swish},
                                           {"leaky_relu", Activation::leaky_relu},
                                           {"clip", Activation::clip}};

class ChainGrower {
 public:
  ChainGrower(const Graph& graph, NodeId node, kernel::Accuracy accuracy)
      : graph_(graph), accuracy_(accuracy) {
    chain_.nodes.push_back(node);
  }

  std::optional<LibraryChain> run() {
    if (!begin()) return std::nullopt;
    const bool takes_more =
        has_type(last(), ir::Dtype::f32) && (chain_.op == LibraryOp::matmul || is_convolution());
    while (takes_more && extend()) {
    }
    for (std::uint32_t operand : {0U, 1U})
      if (has_products() && !chain_.epilogue.has_scale) add_scale_before(operand);
    if (chain_.op == LibraryOp::integer_matmul) add_widening();
    return std::move(chain_);
  }

 private:
  [[nodiscard]] bool is_convolution() const {
    return chain_.op == LibraryOp::convolution || chain_.op == LibraryOp::slice_convolution;
  }
  [[nodiscard]] bool has_products() const {
    return chain_.op == LibraryOp::matmul || chain_.op == LibraryOp::attention;
  }
  [[nodiscard]] ValueId last() const { return graph_.result(chain_.nodes.back()); }
  [[nodiscard]] const std::string& name(NodeId node) const { return graph_.op_name(graph_.op(node)); }
  [[nodiscard]] bool has_type(ValueId value, ir::Dtype dtype) const {
    const pattern::ValueType& type = graph_.type(value);
    return type.dtype == dtype && type.shape != pattern::none;
  }
  [[nodiscard]] const ir::Shape& shape(ValueId value) const { return graph_.shape(graph_.type(value).shape); }

  bool begin() {
    const NodeId node = chain_.nodes[0];
    if (graph_.is_opaque(node) || graph_.result_count(node) == 0) return false;
    const auto* found = std::find_if(std::begin(named_ops), std::end(named_ops),
                                     [&](const NamedOp& op) { return op.name == name(node); });
    if (found == std::end(named_ops)) return false;
    const auto dtype = graph_.type(graph_.result(node)).dtype;
    const auto op = dtype ? op_on(found->op, *dtype, node) : std::nullopt;
    if (!op || !has_type(graph_.result(node), *dtype)) return false;
    chain_.op = *op;
    for (const ValueId input : graph_.inputs(node))
      if (!has_type(input, *dtype)) return false;
    return fits(node);
  }

  [[nodiscard]] std::optional<LibraryOp> op_on(LibraryOp op, ir::Dtype dtype, NodeId node) const {
    const ValueId result = graph_.result(node);
    if (op != LibraryOp::convolution || !has_type(result, dtype)) return op_of(op, dtype);
    return convolution_of(shape(result).size(), dtype);
  }

  /// Whether the library has the op on these types.
  [[nodiscard]] bool fits(NodeId node) {
    const auto inputs = graph_.inputs(node);
    if (chain_.op == LibraryOp::matmul || chain_.op == LibraryOp::integer_matmul ||
        chain_.op == LibraryOp::half_matmul)
      return shape(inputs[0]).size() >= 2 && shape(inputs[1]).size() >= 2;
    if (is_convolution() || chain_.op == LibraryOp::integer_convolution) {
      chain_.epilogue.has_bias = inputs.size() > 2;
      return true;
    }
    // Nobody may want the places of the largest elements.
    for (std::uint32_t k = 1; k < graph_.result_count(node); ++k)
      if (const ValueId more = graph_.result(node, k);
          graph_.is_output(more) || !graph_.consumers(more).empty())
        return false;
    return true;
  }

  /// Takes the next node, if it is one that finishes the result.
  bool extend() {
    if (graph_.is_output(last()) || graph_.consumers(last()).size() != 1) {
      add_update();
      return false;
    }
    const NodeId next = graph_.consumers(last())[0];
    if (!is_plain(next)) return false;
    if (graph_.type(graph_.result(next)) != graph_.type(last())) return false;
    if (add_attention(next)) return false;
    if (!add_activation(next) && !add_binary(next)) return false;
    chain_.nodes.push_back(next);
    return true;
  }

  /// Of a product that others read, too: what is updated by it, or by a multiple of it.
  void add_update() {
    if (chain_.op != LibraryOp::matmul || chain_.nodes.size() != 1) return;
    const ValueId product = last();
    for (const NodeId next : graph_.consumers(product)) {
      if (!is_plain(next) || graph_.type(graph_.result(next)) != graph_.type(product)) continue;
      if (add_update_by(product, next)) return;
      const auto scale = scale_in(next, product);
      const NodeId update = scale == pattern::none ? pattern::none : only_consumer(graph_.result(next));
      if (update == pattern::none || !add_update_by(graph_.result(next), update)) continue;
      chain_.scale = scale;
      chain_.nodes.insert(chain_.nodes.end() - 1, next);
      return;
    }
  }

  /// The number that a node multiplies a value by; `none` if it does something else.
  [[nodiscard]] ValueId scale_in(NodeId node, ValueId value) const {
    const auto inputs = graph_.inputs(node);
    if (name(node) != "mul" || inputs.size() != 2 || inputs[0] == inputs[1]) return pattern::none;
    const ValueId other = inputs[inputs[0] == value ? 1 : 0];
    return has_type(other, ir::Dtype::f32) && is_number(other) ? other : pattern::none;
  }

  bool add_update_by(ValueId by, NodeId next) {
    const auto inputs = graph_.inputs(next);
    const bool is_of_product = inputs[0] == by || inputs[0] == last();
    if (name(next) != "sub" || inputs[1] != by || is_of_product || !take_from(inputs[0])) return false;
    chain_.epilogue.keeps_product = true;
    chain_.nodes.push_back(next);
    return true;
  }

  [[nodiscard]] bool is_plain(NodeId node) const {
    return !graph_.is_opaque(node) && graph_.result_count(node) == 1 && graph_.reads(node).empty();
  }

  /// The one node that reads a value, if it has one result; `none` else.
  [[nodiscard]] NodeId only_consumer(ValueId value) const {
    if (graph_.is_output(value) || graph_.consumers(value).size() != 1) return pattern::none;
    const NodeId node = graph_.consumers(value)[0];
    return is_plain(node) ? node : pattern::none;
  }

  /// A softmax along the rows and the product with values, which nobody but each other reads.
  bool add_attention(NodeId softmax) {
    const Epilogue& epilogue = chain_.epilogue;
    if (chain_.op != LibraryOp::matmul || epilogue.has_bias || epilogue.residual != Residual::none ||
        epilogue.activation != Activation::none || name(softmax) != "softmax" || !is_along_rows(softmax))
      return false;
    const ValueId weights = graph_.result(softmax);
    const NodeId product = only_consumer(weights);
    if (product == pattern::none || name(product) != "matmul") return false;
    const auto inputs = graph_.inputs(product);
    if (inputs[0] != weights || inputs[1] == weights || !has_type(inputs[1], ir::Dtype::f32) ||
        !has_type(graph_.result(product), ir::Dtype::f32))
      return false;
    // Single matrices are mostly weights of layers, which products pack once.
    if (shape(graph_.inputs(chain_.nodes[0])[1]).size() < 3 || shape(inputs[1]).size() < 3) return false;
    chain_.op = LibraryOp::attention;
    chain_.values = inputs[1];
    chain_.softmax = static_cast<std::uint32_t>(chain_.nodes.size());
    chain_.nodes.push_back(softmax);
    chain_.nodes.push_back(product);
    join_heads();
    return true;
  }

  [[nodiscard]] bool is_along_rows(NodeId softmax) const {
    const auto* axis = graph_.attributes(softmax).get<std::int64_t>("axis");
    const auto rank = static_cast<std::int64_t>(shape(graph_.result(softmax)).size());
    return axis == nullptr || *axis == -1 || *axis == rank - 1;
  }

  /// [heads, queries, width] as [queries, heads, width].
  void join_heads() {
    const NodeId next = only_consumer(last());
    if (next == pattern::none || name(next) != "transpose") return;
    const auto* order = graph_.attributes(next).get<std::vector<std::int64_t>>("permutation");
    const std::size_t rank = shape(last()).size();
    if (order == nullptr || order->size() != rank || rank < 3) return;
    for (std::size_t a = 0; a < rank; ++a) {
      const std::size_t from = a == rank - 2 ? rank - 3 : a == rank - 3 ? rank - 2 : a;
      if ((*order)[a] != static_cast<std::int64_t>(from)) return;
    }
    chain_.joins_heads = true;
    chain_.nodes.push_back(next);
  }

  /// What primitives have, and what a card says is one.
  bool add_activation(NodeId next) {
    Epilogue& epilogue = chain_.epilogue;
    if (epilogue.activation != Activation::none ||
        !graph_.has_trait(graph_.op(next), pattern::trait::activation))
      return false;
    const auto* found = std::find_if(std::begin(activations), std::end(activations),
                                     [&](const NamedActivation& a) { return a.name == name(next); });
    const bool is_known = found != std::end(activations);
    const Activation activation = is_known ? found->activation : Activation::by_card;
    const op::Card* card = is_known ? nullptr : op::find_card(name(next));
    if (!is_known && (card == nullptr || !EpilogueFunction::exists(*card))) return false;
    if (!is_exact_enough(activation) || !read_numbers(next)) return false;
    epilogue.activation = activation;
    chain_.activation = card;
    if (epilogue.residual != Residual::none) epilogue.place = ResidualPlace::before_activation;
    return true;
  }

  [[nodiscard]] bool is_exact_enough(Activation activation) const {
    return accuracy_ != kernel::Accuracy::precise || !is_function(activation);
  }

  /// The operands of an activation behind the first: numbers that are known now.
  bool read_numbers(NodeId next) {
    const auto inputs = graph_.inputs(next);
    if (inputs.empty() || inputs[0] != last() || inputs.size() > 3) return false;
    float numbers[2] = {};
    for (std::size_t i = 1; i < inputs.size(); ++i) {
      const auto number = constant_of(inputs[i]);
      if (!number) return false;
      numbers[i - 1] = *number;
    }
    chain_.epilogue.alpha = numbers[0];
    chain_.epilogue.beta = numbers[1];
    return true;
  }

  [[nodiscard]] std::optional<float> constant_of(ValueId value) const {
    if (graph_.producer(value) != pattern::none || !has_type(value, ir::Dtype::f32) || !shape(value).empty())
      return std::nullopt;
    const pattern::External& external = graph_.external(value);
    const auto* number = external.constant ? std::get_if<double>(&*external.constant) : nullptr;
    return number == nullptr ? std::nullopt : std::optional(static_cast<float>(*number));
  }

  bool add_binary(NodeId next) {
    const auto inputs = graph_.inputs(next);
    if (inputs.size() != 2 || inputs[0] == inputs[1]) return false;
    const bool is_first = inputs[0] == last();
    const ValueId other = inputs[is_first ? 1 : 0];
    if (!has_type(other, ir::Dtype::f32)) return false;
    if (name(next) == "add") return add_bias(other) || add_residual(other);
    if (name(next) == "mul") return add_scale(other, false);
    if (name(next) == "sub") return !is_first && take_from(other);
    return name(next) == "div" && is_first && add_scale(other, true);
  }

  bool add_scale(ValueId other, bool divides) {
    Epilogue& epilogue = chain_.epilogue;
    if (chain_.op != LibraryOp::matmul || chain_.nodes.size() > 1 || !is_number(other)) return false;
    epilogue.has_scale = true;
    chain_.scale = other;
    chain_.divides = divides;
    return true;
  }

  /// r - s p is r + (-s) p: weights less their scaled gradient.
  bool take_from(ValueId other) {
    Epilogue& epilogue = chain_.epilogue;
    if (chain_.op != LibraryOp::matmul || epilogue.has_bias || epilogue.activation != Activation::none ||
        !add_residual(other))
      return false;
    epilogue.has_scale = true;
    chain_.negates = true;
    return true;
  }

  /// (s a) b is s (a b): attention scales its queries.
  void add_scale_before(std::uint32_t operand) {
    const ValueId scaled = graph_.inputs(chain_.nodes[0])[operand];
    const NodeId before = only_producer(scaled);
    if (before == pattern::none) return;
    const bool divides = name(before) == "div";
    const auto inputs = graph_.inputs(before);
    if ((!divides && name(before) != "mul") || inputs.size() != 2) return;
    if (!has_type(inputs[0], ir::Dtype::f32) || !has_type(inputs[1], ir::Dtype::f32)) return;
    const std::size_t number = is_number(inputs[1]) ? 1 : 0;
    if (!is_number(inputs[number]) || (divides && number == 0) ||
        graph_.type(inputs[1 - number]) != graph_.type(scaled))
      return;
    chain_.epilogue.has_scale = true;
    chain_.scale = inputs[number];
    chain_.divides = divides;
    chain_.scaled_operand = operand;
    chain_.unscaled = inputs[1 - number];
    chain_.nodes.push_back(before);
  }

  /// Weights of quantised models are bytes, made wider and moved by a number.
  void add_widening() {
    ValueId wide = graph_.inputs(chain_.nodes[0])[1];
    NodeId before = only_producer(wide);
    if (before != pattern::none && name(before) == "sub") {
      const auto inputs = graph_.inputs(before);
      const auto zero = integer_of(inputs[1]);
      if (!zero || graph_.type(inputs[0]) != graph_.type(wide)) return;
      chain_.nodes.push_back(before);
      chain_.zero = *zero;
      chain_.narrow = wide = inputs[0];
      before = only_producer(wide);
    }
    if (before == pattern::none || name(before) != "cast") return;
    const ValueId narrow = graph_.inputs(before)[0];
    if (!has_type(narrow, ir::Dtype::i8) && !has_type(narrow, ir::Dtype::u8)) return;
    chain_.nodes.push_back(before);
    chain_.narrow = narrow;
  }

  /// The node whose one result this is, if the chain alone reads it.
  [[nodiscard]] NodeId only_producer(ValueId value) const {
    const NodeId node = graph_.producer(value);
    if (node == pattern::none || graph_.is_output(value) || graph_.consumers(value).size() != 1)
      return pattern::none;
    return is_plain(node) ? node : pattern::none;
  }

  [[nodiscard]] std::optional<std::int32_t> integer_of(ValueId value) const {
    if (graph_.producer(value) != pattern::none || !shape(value).empty()) return std::nullopt;
    const pattern::External& external = graph_.external(value);
    const auto* number = external.constant ? std::get_if<std::int64_t>(&*external.constant) : nullptr;
    return number == nullptr ? std::nullopt : std::optional(static_cast<std::int32_t>(*number));
  }

  /// A number that is known now, or given with each launch.
  [[nodiscard]] bool is_number(ValueId value) const {
    if (graph_.producer(value) != pattern::none || !shape(value).empty()) return false;
    const pattern::External& external = graph_.external(value);
    if (external.kind == pattern::External::Kind::parameter) return true;
    const auto* number = external.constant ? std::get_if<double>(&*external.constant) : nullptr;
    return number != nullptr && std::isnormal(static_cast<float>(*number)) &&
           std::isnormal(1.0f / static_cast<float>(*number));
  }

  bool add_bias(ValueId other) {
    Epilogue& epilogue = chain_.epilogue;
    if (epilogue.has_bias || epilogue.residual != Residual::none || epilogue.activation != Activation::none)
      return false;
    if (!is_bias(other)) return false;
    epilogue.has_bias = true;
    chain_.bias = other;
    return true;
  }

  /// One number per column of a product, per filter of a convolution: all other sizes are 1.
  [[nodiscard]] bool is_bias(ValueId value) const {
    const ir::Shape &given = shape(value), &result = shape(last());
    const std::size_t behind = chain_.op == LibraryOp::matmul ? 1 : result.size() - 1;
    if (given.size() > result.size() || given.size() < behind) return false;
    const std::size_t axis = given.size() - behind;
    for (std::size_t a = 0; a < given.size(); ++a)
      if (a != axis && given[a] != ir::Dim(1)) return false;
    return given[axis] == result[result.size() - behind];
  }

  bool add_residual(ValueId other) {
    Epilogue& epilogue = chain_.epilogue;
    if (epilogue.residual != Residual::none || graph_.type(other) != graph_.type(last())) return false;
    // Slices of what is added lie apart.
    if (chain_.op == LibraryOp::slice_convolution) return false;
    // A convolution finishes these where its result lies.
    if (chain_.op == LibraryOp::convolution && is_own_activation(epilogue.activation)) return false;
    epilogue.residual = Residual::separate;
    epilogue.place = ResidualPlace::after_activation;
    chain_.residual = other;
    return true;
  }

  const Graph& graph_;
  const kernel::Accuracy accuracy_;
  LibraryChain chain_;
};

}  // namespace

std::optional<LibraryOp> runtime::cpu::op_of(LibraryOp op, ir::Dtype dtype) {
  if (dtype == ir::Dtype::f32) return op;
  const bool is_product = op == LibraryOp::matmul,
             is_half = dtype == ir::Dtype::f16 || dtype == ir::Dtype::bf16;
  if (is_product && is_half) return LibraryOp::half_matmul;
  if (dtype != ir::Dtype::i32) return std::nullopt;
  return is_product ? std::optional(LibraryOp::integer_matmul) : std::nullopt;
}

std::optional<LibraryOp> runtime::cpu::convolution_of(std::size_t rank, ir::Dtype dtype) {
  if (dtype == ir::Dtype::i32) return LibraryOp::integer_convolution;
  const bool is_half = dtype == ir::Dtype::f16 || dtype == ir::Dtype::bf16;
  if (rank < 3 || rank > 5 || (dtype != ir::Dtype::f32 && !is_half)) return std::nullopt;
  return is_half || rank == 5 ? LibraryOp::slice_convolution : LibraryOp::convolution;
}

std::optional<LibraryChain> runtime::cpu::chain_from(const Graph& graph, NodeId node,
                                                     kernel::Accuracy accuracy) {
  return ChainGrower(graph, node, accuracy).run();
}
