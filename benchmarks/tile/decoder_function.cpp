// What a compiler hands the tiler: a decoder as a function of the IR, and a target of a device that has
// matrix products with an epilogue and generates loops for everything element-wise. Costs are computed from
// shapes.
#include <algorithm>
#include <memory>

#include "benchmarks/tile/instances.h"
#include "tessera/base/text.h"
#include "tessera/op/ir_builder.h"
#include "tessera/pattern/library.h"
#include "tessera/pattern/pattern_builder.h"
#include "tessera/pattern/region_grower.h"

using namespace tessera;
using namespace tessera::bench;
using namespace tessera::pattern;
using op::Value;

namespace {

constexpr std::int64_t tokens = 256, heads = 8, head_width = 64, width = heads * head_width;

class Decoder {
 public:
  explicit Decoder(LayerWidths widths) : widths_(widths) {}

  ir::FunctionRef build(std::uint32_t layers) {
    Value x = b_.parameter("x", {ir::Dtype::f32, {tokens, width}});
    mask_ = b_.parameter("mask", {ir::Dtype::f32, {tokens, tokens}});
    for (layer_ = 0; layer_ < layers; ++layer_) x = add_layer(x);
    return value_or_throw(b_.function("decoder", std::vector{norm(x)}));
  }

 private:
  Value weight(std::int64_t rows, std::int64_t columns) {
    return b_.parameter(cat("w", parameters_++), {ir::Dtype::f32, {rows, columns}});
  }
  Value bias(std::int64_t size) { return b_.parameter(cat("b", parameters_++), {ir::Dtype::f32, {size}}); }
  Value linear(Value x, std::int64_t from, std::int64_t to) {
    return op::matmul(x, weight(from, to)) + bias(to);
  }
  Value reduce(const char* op, Value x) {
    ir::Attributes attributes;
    attributes.set("axes", std::vector<std::int64_t>{-1});
    attributes.set("keepdims", true);
    return b_.call(op, {x}, attributes);
  }

  Value norm(Value x) {
    const Value centred = x - reduce("mean", x);
    const Value variance = reduce("mean", centred * centred);
    return centred * op::unary("rsqrt", variance + 1e-5) * bias(width) + bias(width);
  }
  Value split_heads(Value x) {
    return op::transpose(op::reshape(x, {tokens, heads, head_width}), std::vector<std::int64_t>{1, 0, 2});
  }
  Value attention(Value x) {
    const Value q = split_heads(linear(x, width, width));
    const Value k = split_heads(linear(x, width, width));
    const Value v = split_heads(linear(x, width, width));
    const Value scores = op::matmul(q, op::transpose_matrix(k)) * 0.125 + mask_;
    const Value powers = op::unary("exp", scores - reduce("max", scores));
    const Value mixed = op::matmul(powers / reduce("sum", powers), v);
    const Value joined =
        op::reshape(op::transpose(mixed, std::vector<std::int64_t>{1, 0, 2}), {tokens, width});
    return linear(joined, width, width);
  }
  /// The GELU by tanh, op by op.
  static Value gelu(Value x) {
    const Value inner = (x + x * x * x * 0.044715) * 0.7978845608;
    return x * (op::unary("tanh", inner) + 1) * 0.5;
  }
  Value add_layer(Value x) {
    const std::int64_t inner = 4 * width + (widths_ == LayerWidths::different ? layer_ : 0);
    const Value y = x + attention(norm(x));
    return y + linear(gelu(linear(norm(y), width, inner)), inner, width);
  }

  LayerWidths widths_;
  op::IrBuilder b_;
  Value mask_;
  std::int64_t layer_ = 0;
  std::uint32_t parameters_ = 0;
};

double elements(const Graph& graph, ValueId value) {
  const ShapeId shape = graph.type(value).shape;
  double out = 1;
  if (shape != none)
    for (const ir::Dim& dim : graph.shape(shape)) out *= static_cast<double>(dim.value());
  return out;
}

/// Microseconds: a launch, and what goes through memory at 100 elements a nanosecond.
double loop_cost(const Graph& graph, std::span<const NodeId> nodes) {
  const auto is_inside = [&](NodeId node) { return std::ranges::binary_search(nodes, node); };
  double moved = 0;
  for (NodeId node : nodes) {
    for (ValueId value : graph.inputs(node))
      if (graph.producer(value) == none || !is_inside(graph.producer(value))) moved += elements(graph, value);
    const ValueId result = graph.result(node);
    if (graph.is_output(result) || !std::ranges::all_of(graph.consumers(result), is_inside))
      moved += elements(graph, result);
  }
  return 2 + moved * 1e-5;
}

double product_cost(const Graph& graph, const Tile& tile) {
  double cost = 4;
  for (ValueId value : tile.inputs) cost += elements(graph, value) * 1e-5;
  for (ValueId value : tile.outputs) cost += elements(graph, value) * 1e-5;
  return cost;
}

/// matmul, alone or with a bias, an element-wise op of its own, a residual, or a run of element-wise ops.
std::vector<Pattern> product_patterns() {
  std::vector<Pattern> out;
  const auto add = [&](const char* name, auto write) {
    PatternBuilder p(name);
    write(p, p.op("matmul", {p.input("a"), p.input("b")}).as("product"));
    out.push_back(value_or_throw(p.cost({.compute = product_cost}).build()));
  };
  add("matmul", [](auto&, auto) {});
  add("matmul_bias", [](auto& p, auto m) { (m + p.input("c")).as("sum"); });
  add("matmul_bias_residual", [](auto& p, auto m) { (m + p.input("c") + p.input("r")).as("sum"); });
  add("matmul_scale", [](auto& p, auto m) { (m * p.constant()).as("scaled"); });
  add("matmul_scale_mask", [](auto& p, auto m) { (m * p.constant() + p.input("mask")).as("masked"); });
  add("matmul_run", [](auto& p, auto m) { p.with_trait("elementwise", {m}).as("run").repeated(1, 8); });
  return out;
}

}  // namespace

ir::FunctionRef tessera::bench::decoder(std::uint32_t layers, LayerWidths widths) {
  return Decoder(widths).build(layers);
}

Target tessera::bench::compiler_target() {
  Target target{.name = "device",
                .sources = {std::make_shared<PatternLibrary>(product_patterns()),
                            std::make_shared<RegionGrower>(RegionOptions{.cost = loop_cost})}};
  target.uncovered_cost = [](const Graph& graph, NodeId node) {
    return 1 + loop_cost(graph, std::span(&node, 1));
  };
  return target;
}
