#include "tessera/runtime/cpu/library_form.h"

#include <algorithm>

#include "tessera/op/catalogue.h"
#include "tessera/op/op_facts.h"
#include "tessera/pattern/graph_function.h"

using namespace tessera;
using namespace tessera::runtime::cpu;
using ir::Dtype;
using pattern::Graph;
using pattern::ValueId;

namespace {

/// From a chain in the graph of a step's ops to the inputs of the step.
class FormReader {
 public:
  FormReader(const ir::Function& ops, const Graph& graph, const LibraryChain& chain)
      : ops_(ops), graph_(graph), chain_(chain) {}

  std::optional<LibraryForm> run() {
    const auto& product = static_cast<const ir::Call&>(*ops_.body[chain_.nodes[0]]->value);
    out_.op = chain_.op;
    out_.epilogue = chain_.epilogue;
    out_.activation = chain_.activation;
    out_.card = op::find_card(product.op);
    if (out_.card == nullptr) return std::nullopt;
    auto attributes = op::complete_attributes(*out_.card, product.attrs);
    if (!attributes) return std::nullopt;
    out_.attributes = *std::move(attributes);
    const auto inputs = graph_.inputs(chain_.nodes[0]);
    out_.left = input(operand(inputs, 0));
    if (inputs.size() > 1) out_.right = input(operand(inputs, 1));
    out_.right_zero = chain_.zero;
    if (out_.epilogue.has_bias) out_.bias = input(inputs.size() > 2 ? inputs[2] : chain_.bias);
    if (chain_.residual != pattern::none) out_.residual = input(chain_.residual);
    if (chain_.values != pattern::none) out_.values = input(chain_.values);
    out_.joins_heads = chain_.joins_heads;
    if (out_.epilogue.has_scale) set_scale();
    if (out_.epilogue.keeps_product) {
      out_.product = result(chain_.nodes[0]);
      out_.result = result(chain_.nodes.back());
    }
    return is_complete_ ? std::optional(std::move(out_)) : std::nullopt;
  }

 private:
  [[nodiscard]] ValueId operand(std::span<const ValueId> inputs, std::uint32_t i) const {
    if (i == 1 && chain_.narrow != pattern::none) return chain_.narrow;
    return i == chain_.scaled_operand ? chain_.unscaled : inputs[i];
  }

  std::uint32_t input(ValueId value) {
    const ir::ExprRef expr = graph_.producer(value) == pattern::none ? graph_.external(value).expr : nullptr;
    for (std::uint32_t i = 0; i < ops_.params.size(); ++i)
      if (ops_.params[i].get() == expr.get()) return i;
    is_complete_ = false;
    return no_input;
  }

  std::uint32_t result(pattern::NodeId node) {
    const ir::Var* const target = ops_.body[node]->targets[0].get();
    for (std::uint32_t i = 0; i < ops_.results.size(); ++i)
      if (ops_.results[i].get() == target) return i;
    is_complete_ = false;
    return no_result;
  }

  void set_scale() {
    const float sign = chain_.negates ? -1.0f : 1.0f;
    out_.scale = sign;
    if (chain_.scale == pattern::none) return;
    const pattern::External& scale = graph_.external(chain_.scale);
    if (const auto* parameter = ir::as<ir::Param>(*scale.expr)) {
      out_.scale_slot = parameter->slot;
      out_.divides = chain_.divides;
      return;
    }
    const auto number = static_cast<float>(std::get<double>(*scale.constant));
    out_.scale = sign * (chain_.divides ? 1.0f / number : number);
  }

  const ir::Function& ops_;
  const Graph& graph_;
  const LibraryChain& chain_;
  LibraryForm out_;
  bool is_complete_ = true;
};

/// A chain computes one value, or two: a step may say that it gives others too, or its own inputs.
bool gives_values_of(const LibraryChain& chain, const ir::Function& ops) {
  if (chain.epilogue.keeps_product) return ops.results.size() == 2;
  if (ops.results.size() != 1) return false;
  return std::any_of(ops.body.begin(), ops.body.end(), [&](const auto& statement) {
    return !statement->targets.empty() && statement->targets[0].get() == ops.results[0].get();
  });
}

std::optional<LibraryForm> form_of_ops(const ir::Function& ops) {
  const auto graph = pattern::graph_of(ops, op::op_facts());
  if (!graph) return std::nullopt;
  for (const pattern::NodeId node : graph->order()) {
    const auto chain = chain_from(*graph, node);
    if (!chain || chain->nodes.size() != graph->node_count()) continue;
    return gives_values_of(*chain, ops) ? FormReader(ops, *graph, *chain).run() : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

std::optional<LibraryForm> runtime::cpu::library_form(const plan::Step& step) {
  return step.kind == plan::StepKind::library ? form_of_ops(*step.function) : std::nullopt;
}

std::optional<LibraryForm> runtime::cpu::library_form(const op::CallInfo& call) {
  LibraryForm out{.card = &call.card(), .attributes = call.attributes()};
  const std::string_view name = call.card().name;
  if (name != "matmul" && name != "conv") return std::nullopt;
  const std::size_t rank = call.input(0).rank();
  if (name == "matmul" && (rank < 2 || call.input(1).rank() < 2)) return std::nullopt;
  const Dtype dtype = call.input(0).dtype;
  const auto found = name == "matmul" ? op_of(LibraryOp::matmul, dtype) : convolution_of(rank, dtype);
  if (!found) return std::nullopt;
  out.op = *found;
  out.right = 1;
  if (call.inputs().size() > 2) out.epilogue.has_bias = true, out.bias = 2;
  return out;
}
