// The programs whose compilation is measured (benchmarks/compile_bench.cpp) and whose memory is checked.
#pragma once

#include <numeric>

#include "tessera/autodiff/gradient.h"
#include "tessera/base/text.h"
#include "tessera/op/ir_builder.h"

namespace tessera::fixture {

using op::Value;

/// A decoder-only transformer, as a framework records it, op by op: 41 statements a layer.
class Transformer {
 public:
  ir::FunctionRef build(std::size_t nodes) {
    Value x = b_.parameter("x", {ir::Dtype::f32, {tokens, width}});
    while (b_.statements().size() + 41 <= nodes) x = layer(x);
    while (b_.statements().size() < nodes) x = op::unary("tanh", x);
    return value_or_throw(b_.function("transformer", std::vector{x}));
  }

 private:
  static constexpr std::int64_t tokens = 128, width = 256, heads = 8, size = width / heads;

  Value weight(ir::Shape shape) {
    return b_.parameter(cat("w", next_++), {ir::Dtype::f32, std::move(shape)});
  }
  Value linear(Value x, std::int64_t in, std::int64_t out) {
    return op::matmul(x, weight({in, out})) + weight({out});
  }

  Value norm(Value x) {
    const Value mean = b_.call("mean", {x}, {{"axes", std::vector<std::int64_t>{-1}}, {"keepdims", true}});
    const Value centred = x - mean;
    const Value variance =
        b_.call("mean", {centred * centred}, {{"axes", std::vector<std::int64_t>{-1}}, {"keepdims", true}});
    return centred * op::unary("rsqrt", variance + 1e-5) * weight({width}) + weight({width});
  }

  Value split(Value x) {
    return op::transpose(op::reshape(x, {tokens, heads, size}), std::vector<std::int64_t>{1, 0, 2});
  }

  Value attention(Value x) {
    const Value q = split(linear(x, width, width)), k = split(linear(x, width, width));
    const Value v = split(linear(x, width, width));
    const Value scores = op::matmul(q, op::transpose_matrix(k)) * 0.125;
    const Value mixed = op::matmul(op::unary("softmax", scores), v);
    const Value joined = op::transpose(mixed, std::vector<std::int64_t>{1, 0, 2});
    return linear(op::reshape(joined, {tokens, width}), width, width);
  }

  Value layer(Value x) {
    const Value y = x + attention(norm(x));
    const Value wide = op::unary("gelu", linear(norm(y), width, 4 * width));
    return y + linear(wide, 4 * width, width);
  }

  op::IrBuilder b_;
  int next_ = 0;
};

/// The gradients of all weights of ten layers.
inline ir::FunctionRef training_step() {
  const auto forward = Transformer().build(410);
  std::vector<std::size_t> all(forward->params.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return value_or_throw(autodiff::vjp(forward, all));
}

/// Eight layers of unlike widths.
inline ir::FunctionRef mlp() {
  op::IrBuilder b;
  Value x = b.parameter("x", {ir::Dtype::f32, {64, 784}});
  for (const std::int64_t out : {512, 2048, 256, 1024, 128, 512, 64, 10}) {
    const Value w = b.parameter("w", {ir::Dtype::f32, {x.shape()[1], out}});
    x = op::unary("relu", op::matmul(x, w) + b.parameter("b", {ir::Dtype::f32, {out}}));
  }
  return value_or_throw(b.function("mlp", std::vector{op::unary("softmax", x)}));
}

}  // namespace tessera::fixture
