// Building gradients: the time per op of a long function, and the nodes of the gradient of a transformer
// block against those of the block.
#include <benchmark/benchmark.h>

#include "tessera/autodiff/gradient.h"
#include "tessera/base/text.h"
#include "tessera/op/catalogue.h"
#include "tessera/op/ir_builder.h"

using namespace tessera;
using op::Value;

namespace {

/// A chain of layers of five ops each: matmul, add, tanh, mul, add.
ir::FunctionRef long_function(std::size_t ops) {
  op::IrBuilder b;
  const op::ValueType square{ir::Dtype::f32, {64, 64}};
  Value x = b.parameter("x", square);
  const Value w = b.parameter("w", square), v = b.parameter("v", square);
  for (std::size_t i = 0; i < ops / 5; ++i) x = x + op::unary("tanh", op::matmul(x, w) + v) * v;
  return value_or_throw(b.function("f", std::vector{x}));
}

/// A composite op as the ops it stands for: gradients are written in those too.
Value primitives(op::IrBuilder& b, std::string_view op, op::Values inputs) {
  const op::Card& card = *op::find_card(op);
  op::ValueTypes types;
  for (Value input : inputs) types.push_back(input.type());
  const op::Attributes attributes = value_or_throw(op::complete_attributes(card, {}));
  return card.decompose(b, op::CallInfo(card, types, attributes), inputs)[0];
}

Value linear(op::IrBuilder& b, Value x, const char* name, const ir::Dim& out) {
  const Value w = b.parameter(cat(name, "_w"), {ir::Dtype::f32, {x.shape()[x.rank() - 1], out}});
  const Value bias = b.parameter(cat(name, "_b"), {ir::Dtype::f32, {out}});
  return op::matmul(x, w) + bias;
}

Value layer_norm(op::IrBuilder& b, Value x, const char* name) {
  const ir::Dim width = x.shape()[x.rank() - 1];
  const Value weight = b.parameter(cat(name, "_w"), {ir::Dtype::f32, {width}});
  const Value bias = b.parameter(cat(name, "_b"), {ir::Dtype::f32, {width}});
  return primitives(b, "layer_norm", {x, weight, bias});
}

/// [batch, time, heads * size] to [batch, heads, time, size].
Value split_heads(Value x, std::int64_t heads, std::int64_t size) {
  const Value parts = op::reshape(x, {x.shape()[0], x.shape()[1], heads, size});
  return op::transpose(parts, std::vector<std::int64_t>{0, 2, 1, 3});
}

/// Pre-norm, four heads, a feed-forward part four times as wide.
ir::FunctionRef transformer_block() {
  constexpr std::int64_t width = 64, heads = 4, size = width / heads, time = 32;
  op::IrBuilder b;
  const Value x = b.parameter("x", {ir::Dtype::f32, {8, time, width}});
  const Value h = layer_norm(b, x, "norm1");
  const Value q = split_heads(linear(b, h, "q", width), heads, size);
  const Value k = split_heads(linear(b, h, "k", width), heads, size);
  const Value v = split_heads(linear(b, h, "v", width), heads, size);
  const Value scores = op::matmul(q, op::transpose_matrix(k)) * 0.25;
  const Value mixed = op::matmul(primitives(b, "softmax", {scores}), v);
  const Value joined =
      op::reshape(op::transpose(mixed, std::vector<std::int64_t>{0, 2, 1, 3}), {8, time, width});
  const Value y = x + linear(b, joined, "out", width);
  const Value wide = primitives(b, "gelu", {linear(b, layer_norm(b, y, "norm2"), "up", 4 * width)});
  const Value z = y + linear(b, wide, "down", width);
  return value_or_throw(b.function("block", std::vector{z}));
}

void build_gradient(benchmark::State& state) {
  const auto ops = static_cast<std::size_t>(state.range(0));
  const auto function = long_function(ops);
  const auto wrt = autodiff::float_parameters(*function);
  for (auto _ : state) benchmark::DoNotOptimize(value_or_throw(autodiff::vjp(function, wrt)));
  state.counters["s/op"] = benchmark::Counter(
      static_cast<double>(ops), benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void transformer_gradient(benchmark::State& state) {
  const auto block = transformer_block();
  const auto wrt = autodiff::float_parameters(*block);
  ir::FunctionRef gradient;
  for (auto _ : state) gradient = value_or_throw(autodiff::vjp(block, wrt));
  const auto forward = static_cast<double>(block->body.size());
  state.counters["forward"] = forward;
  state.counters["gradient"] = static_cast<double>(gradient->body.size());
  state.counters["ratio"] = static_cast<double>(gradient->body.size()) / forward;
}

BENCHMARK(build_gradient)->Arg(1000)->Arg(10'000);
BENCHMARK(transformer_gradient);

}  // namespace

BENCHMARK_MAIN();
