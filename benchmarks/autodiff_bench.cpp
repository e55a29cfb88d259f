// Building gradients: the time per op of a long function, and the nodes of the gradient of a transformer
// block against those of the block, both counted in primitive ops without anything computed twice.
#include <benchmark/benchmark.h>

#include "tessera/autodiff/gradient.h"
#include "tessera/autodiff/simplify.h"
#include "tessera/base/text.h"
#include "tessera/ir/node_table.h"
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

Value linear(op::IrBuilder& b, Value x, const char* name, const ir::Dim& out) {
  const Value w = b.parameter(cat(name, "_w"), {ir::Dtype::f32, {x.shape()[x.rank() - 1], out}});
  const Value bias = b.parameter(cat(name, "_b"), {ir::Dtype::f32, {out}});
  return op::matmul(x, w) + bias;
}

Value layer_norm(op::IrBuilder& b, Value x, const char* name) {
  const ir::Dim width = x.shape()[x.rank() - 1];
  const Value weight = b.parameter(cat(name, "_w"), {ir::Dtype::f32, {width}});
  const Value bias = b.parameter(cat(name, "_b"), {ir::Dtype::f32, {width}});
  return b.call("layer_norm", {x, weight, bias});
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
  const Value mixed = op::matmul(op::unary("softmax", scores), v);
  const Value joined =
      op::reshape(op::transpose(mixed, std::vector<std::int64_t>{0, 2, 1, 3}), {8, time, width});
  const Value y = x + linear(b, joined, "out", width);
  const Value wide = op::unary("gelu", linear(b, layer_norm(b, y, "norm2"), "up", 4 * width));
  const Value z = y + linear(b, wide, "down", width);
  return value_or_throw(b.function("block", std::vector{z}));
}

/// The function with composite ops written out as what they stand for.
class Primitives {
 public:
  ir::FunctionRef run(const ir::Function& function) {
    for (const auto& param : function.params)
      values_[*param] = b_.adopt_parameter(param, *op::value_type(*param->type));
    for (const auto& statement : function.body) {
      const auto& call = static_cast<const ir::Call&>(*statement->value);
      std::vector<Value> inputs;
      for (const auto& arg : call.args) inputs.push_back(value(arg));
      values_[*statement->targets[0]] = write(*op::find_card(call.op), inputs, call.attrs);
    }
    std::vector<Value> results;
    for (const auto& result : function.results) results.push_back(value(result));
    return autodiff::simplified(value_or_throw(b_.function(function.name, results)));
  }

 private:
  Value value(const ir::ExprRef& expr) {
    const Value* known = ir::is<ir::Var>(expr) ? values_.find(*expr) : nullptr;
    return known == nullptr ? b_.import(expr, *op::operand_type(*expr)) : *known;
  }

  Value write(const op::Card& card, const std::vector<Value>& inputs, const op::Attributes& attributes) {
    if (!card.traits.composite) return b_.call(card.name, inputs, attributes);
    op::ValueTypes types;
    for (Value input : inputs) types.push_back(input.type());
    return card.decompose(b_, op::CallInfo(card, types, attributes), inputs)[0];
  }

  op::IrBuilder b_;
  ir::NodeTable<Value> values_;
};

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
  const auto forward = static_cast<double>(Primitives().run(*block)->body.size());
  const auto backward = static_cast<double>(Primitives().run(*gradient)->body.size());
  state.counters["forward"] = forward;
  state.counters["gradient"] = backward;
  state.counters["ratio"] = backward / forward;
}

BENCHMARK(build_gradient)->Arg(1000)->Arg(10'000);
BENCHMARK(transformer_gradient);

}  // namespace

BENCHMARK_MAIN();
