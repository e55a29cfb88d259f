// A decoder-only transformer as a framework records it, op by op, and the kernels of a library for it.
#include <memory>

#include "benchmarks/tile/instances.h"
#include "tessera/base/text.h"
#include "tessera/op/op_facts.h"
#include "tessera/pattern/graph_builder.h"
#include "tessera/pattern/library.h"
#include "tessera/pattern/pattern_text.h"
#include "tessera/pattern/region_grower.h"

using namespace tessera;
using namespace tessera::bench;
using namespace tessera::pattern;

namespace {

constexpr std::int64_t tokens = 512, heads = 12, width = 768, head_width = 64;

class TransformerBuilder {
 public:
  Graph build(std::uint32_t layers) {
    ValueId x = builder_.input("x");
    builder_.set_type(x, {ir::Dtype::f32, full_});
    for (layer_ = 0; layer_ < layers; ++layer_) x = add_layer(x);
    builder_.set_output(add("matmul", {add_norm(x, "last"), weight("head")}, full_));
    return value_or_throw(std::move(builder_).build());
  }

 private:
  ShapeId shape(std::initializer_list<std::int64_t> sizes) {
    ir::Shape out;
    for (std::int64_t size : sizes) out.push_back(ir::Dim(size));
    return builder_.shape(out);
  }
  ValueId add(const char* op, std::vector<ValueId> inputs, ShapeId result) {
    return builder_.add(op, std::move(inputs), {}, {ir::Dtype::f32, result});
  }
  ValueId weight(const char* name) { return builder_.input(cat(name, ".", layer_)); }
  ValueId scalar(double value) { return builder_.constant(value); }

  ValueId add_norm(ValueId x, const char* name) {
    const ValueId wide = add("cast", {x}, full_);
    const ValueId centred = add("sub", {wide, add("mean", {wide}, column_)}, full_);
    const ValueId variance = add("mean", {add("mul", {centred, centred}, full_)}, column_);
    const ValueId scale = add("rsqrt", {add("add", {variance, scalar(1e-5)}, column_)}, column_);
    const ValueId scaled = add("mul", {add("mul", {centred, scale}, full_), weight(name)}, full_);
    return add("cast", {add("add", {scaled, weight("norm.bias")}, full_)}, full_);
  }
  ValueId add_projection(ValueId x, const char* name, ShapeId result) {
    return add("add", {add("matmul", {x, weight(name)}, result), weight("bias")}, result);
  }
  ValueId add_heads(ValueId x, const char* name) {
    const ValueId y = add("reshape", {add_projection(x, name, full_)}, split_);
    return add("transpose", {y}, per_head_);
  }
  ValueId add_head_norm(ValueId x) {
    const ValueId mean = add("mean", {add("mul", {x, x}, per_head_)}, head_column_);
    const ValueId scale = add("rsqrt", {add("add", {mean, scalar(1e-6)}, head_column_)}, head_column_);
    return add("mul", {add("mul", {x, scale}, per_head_), weight("head.norm")}, per_head_);
  }
  ValueId add_rotation(ValueId x) {
    const ValueId low = add("slice", {x}, half_head_);
    const ValueId high = add("neg", {add("slice", {x}, half_head_)}, half_head_);
    const ValueId turned = add("concat", {high, low}, per_head_);
    return add("add",
               {add("mul", {x, builder_.input("cos")}, per_head_),
                add("mul", {turned, builder_.input("sin")}, per_head_)},
               per_head_);
  }
  ValueId add_softmax(ValueId scores) {
    const ValueId shifted = add("sub", {scores, add("max", {scores}, score_column_)}, scores_);
    const ValueId powers = add("exp", {shifted}, scores_);
    return add("div", {powers, add("sum", {powers}, score_column_)}, scores_);
  }
  ValueId add_attention(ValueId x) {
    const ValueId q = add_rotation(add_head_norm(add_heads(x, "q")));
    const ValueId k = add_rotation(add_head_norm(add_heads(x, "k")));
    const ValueId v = add_heads(x, "v");
    const ValueId scores = add("matmul", {q, add("transpose", {k}, per_head_)}, scores_);
    const ValueId scaled = add("mul", {scores, scalar(0.125)}, scores_);
    const ValueId capped = add("tanh", {add("div", {scaled, scalar(50)}, scores_)}, scores_);
    const ValueId masked =
        add("add", {add("mul", {capped, scalar(50)}, scores_), builder_.input("mask")}, scores_);
    const ValueId mixed = add("transpose", {add("matmul", {add_softmax(masked), v}, per_head_)}, split_);
    return add_projection(add("reshape", {mixed}, full_), "o", full_);
  }
  ValueId add_gelu(ValueId x) {
    const ValueId cube = add("mul", {add("mul", {x, x}, inner_), x}, inner_);
    const ValueId sum = add("add", {add("mul", {cube, scalar(0.044715)}, inner_), x}, inner_);
    const ValueId wave = add("tanh", {add("mul", {sum, scalar(0.7978845608)}, inner_)}, inner_);
    return add("mul", {add("mul", {add("add", {wave, scalar(1)}, inner_), x}, inner_), scalar(0.5)}, inner_);
  }
  ValueId add_layer(ValueId x) {
    const ValueId attended = add("mul", {add_attention(add_norm(x, "norm1")), weight("scale1")}, full_);
    const ValueId y = add("add", {x, attended}, full_);
    const ValueId inner = add_gelu(add_projection(add_norm(y, "norm2"), "up", inner_));
    const ValueId fed = add("mul", {add_projection(inner, "down", full_), weight("scale2")}, full_);
    return add("add", {y, fed}, full_);
  }

  GraphBuilder builder_{op::op_facts()};
  std::uint32_t layer_ = 0;
  ShapeId full_ = shape({tokens, width}), column_ = shape({tokens, 1}), inner_ = shape({tokens, 4 * width});
  ShapeId split_ = shape({tokens, heads, head_width}), per_head_ = shape({heads, tokens, head_width});
  ShapeId half_head_ = shape({heads, tokens, head_width / 2}), head_column_ = shape({heads, tokens, 1});
  ShapeId scores_ = shape({heads, tokens, tokens}), score_column_ = shape({heads, tokens, 1});
};

/// What a library for this model would have: every op alone, and what is usually fused. Costs in
/// microseconds.
constexpr const char* patterns[] = {
    "1:matmul @cost=30",
    "1:<elementwise> @cost=6",
    "1:<reduction> @cost=6",
    "1:reshape @cost=0.5",
    "1:transpose @cost=7",
    "1:slice @cost=4",
    "1:concat @cost=6",
    // matrix products with what comes before or after
    "1:matmul->2:add @cost=31",
    "1:matmul->2:mul @cost=31",
    "1:matmul->2:add->3:mul @cost=32",
    "1:matmul->2:add->3:mul->4:add @cost=33",
    "1:matmul->2:<elementwise>+ @cost=34",
    "1:matmul->2:add->3:reshape @cost=31.5",
    "1:matmul->2:add->3:reshape->4:transpose @cost=33",
    "1:reshape->2:transpose @cost=6",
    "1:transpose->2:matmul @cost=31",
    "1:matmul->2:transpose->3:reshape @cost=32",
    "1:<elementwise>->2:<elementwise> @cost=6.5",
    "1:reshape->2:matmul->3:add @cost=33",
    "1:transpose->2:reshape->3:matmul->4:add @cost=34",
    // runs of element-wise ops, with a reduction at either end
    "1:<elementwise>->2:<elementwise>+ @cost=7",
    "1:<reduction>->2:<elementwise>+ @cost=8",
    "1:<elementwise>+->2:<reduction> @cost=8",
    "1:<elementwise>->2:<reduction>->3:<elementwise>+ @cost=9",
    // softmax, alone and with what comes before
    "1:max->2:sub->3:exp->4:div; 3->5:sum->4 @cost=14",
    "0:add->1:max->2:sub->3:exp->4:div; 3->5:sum->4; 0->2 @cost=15",
    "9:div->8:tanh->7:mul->0:add->1:max->2:sub->3:exp->4:div; 3->5:sum->4; 0->2 @cost=17.5",
    "1:div->2:tanh->3:mul @cost=9",
    "1:mul->2:div->3:tanh->4:mul->5:add @cost=12",
    // norms
    "1:mean->2:sub->3:mul; 2->3; 3->4:mean->5:add->6:rsqrt; 2->7:mul; 6->7 @cost=13",
    "0:cast->2:sub; 0->1:mean->2->3:mul; 2->3; 3->4:mean->5:add->6:rsqrt; 2->7:mul; "
    "6->7->8:mul->9:add->10:cast "
    "@cost=15",
    "1:mul->2:mean->3:add->4:rsqrt->5:mul @cost=11",
    "1:mul->2:mean->3:add->4:rsqrt->5:mul->6:mul @cost=11.5",
    "1:add->2:rsqrt @cost=4.5",
    "1:cast->2:matmul @cost=31",
    "1:<elementwise>->2:<elementwise>->3:<elementwise> @cost=7",
    // rotary positions
    "1:slice->3:concat; 2:slice->4:neg->3->5:mul @out=5 @cost=12",
    "1:mul->3:add; 2:mul->3 @cost=8",
    // the activation
    "1:mul->2:mul->3:mul->4:add->5:mul->6:tanh->7:add->8:mul->9:mul @cost=10",
    "1:tanh->2:add->3:mul->4:mul @cost=7",
};
static_assert(std::size(patterns) == 40);

/// A launch, the arithmetic, and what goes through memory.
double region_cost(const Graph& graph, std::span<const NodeId> nodes) {
  const auto is_inside = [&](NodeId node) {
    return node != none && std::find(nodes.begin(), nodes.end(), node) != nodes.end();
  };
  double cost = 3 + 0.15 * static_cast<double>(nodes.size());
  for (NodeId node : nodes) {
    for (ValueId value : graph.inputs(node)) cost += is_inside(graph.producer(value)) ? 0 : 0.6;
    const auto consumers = graph.consumers(graph.result(node));
    if (!std::all_of(consumers.begin(), consumers.end(), is_inside)) cost += 0.9;
  }
  return cost;
}

}  // namespace

TileInstance tessera::bench::transformer(std::uint32_t layers) {
  std::vector<Pattern> library;
  for (const char* text : patterns)
    library.push_back(value_or_throw(parse_pattern_text(SourceText("pattern", text), text, op::op_facts())));
  return {TransformerBuilder().build(layers),
          {.sources = {std::make_shared<PatternLibrary>(std::move(library)),
                       std::make_shared<RegionGrower>(RegionOptions{.cost = region_cost})}}};
}
