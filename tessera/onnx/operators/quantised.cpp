// Quantised operators: integers with a scale and a zero point stand for real numbers.
#include "tessera/onnx/operators/quantised.h"

#include <cmath>

#include "tessera/onnx/operators/window_attributes.h"

using namespace tessera;
using namespace tessera::onnx;

namespace {

/// Scales and zero points of rank 1 are per index of an axis.
Value along_axis(Value v, std::size_t rank, std::int64_t axis) {
  if (static_cast<std::int64_t>(rank) <= axis) return v;  // broadcasting says what is wrong
  if (!v || v.rank() != 1 || v.shape()[0] == Dim(1)) return v && v.rank() == 1 ? reshape(v, {}) : v;
  Shape shape(rank - static_cast<std::size_t>(axis), Dim(1));
  shape[0] = v.shape()[0];
  return reshape(v, shape);
}

/// round(x / scale) + zero, saturated to `dtype`. Halves round to even before the zero point is added.
Value quantised(Value x, Value scale, Value zero, Dtype dtype) {
  if (!x || !scale) return {};
  op::Builder& b = *x.builder;
  Value steps = unary("round", x / scale);
  if (zero && steps) steps = steps + cast(zero, steps.dtype());
  if (!steps) return {};
  const bool is_signed = ir::is_signed_integer(dtype);
  const int bits = 8 * static_cast<int>(ir::size_of(dtype));
  const double high = std::ldexp(1.0, is_signed ? bits - 1 : bits) - 1;
  const double low = is_signed ? -high - 1 : 0;
  steps = b.call("minimum", {b.call("maximum", {steps, b.constant(low, steps.dtype())}),
                             b.constant(high, steps.dtype())});
  return cast(steps, dtype);
}

}  // namespace

DynamicallyQuantised tessera::onnx::dynamically_quantised(Value x) {
  if (!x) return {};
  op::Builder& b = *x.builder;
  const auto number = [&](double value) { return b.constant(value, x.dtype()); };
  const Value low = b.call("minimum", {number(0), b.call("min", {x})});
  const Value high = b.call("maximum", {number(0), b.call("max", {x})});
  const Value range = (high - low) / 255.0;
  // A tensor of zeros has no range; its scale does not matter then.
  const Value scale = where(b.call("eq", {range, number(0)}), number(1), range);
  const Value zero = cast(b.call("clip", {unary("round", -low / scale), number(0), number(255)}), Dtype::u8);
  return {quantised(x, scale, zero, Dtype::u8), range, zero};
}

namespace {

Result<std::int64_t> quantised_axis(NodeCall& node, Value x) {
  const std::int64_t axis = node.integer("axis", 1), rank = static_cast<std::int64_t>(x.rank());
  // The default means nothing where the scale is one number, whatever the rank.
  if (node.attribute("axis") == nullptr && axis >= rank) return 0;
  return node.axis(axis, x.rank());
}

/// A scale or zero point as it goes with the elements of x: of one number, per index of an axis, or per block
/// of `block_size` indices.
Result<Value> spread(NodeCall& node, Value v, Value x, std::int64_t axis) {
  const std::int64_t block = node.integer("block_size", 0);
  TESSERA_TRY(node.status());
  if (block == 0 || !v) return along_axis(v, x.rank(), axis);
  const Dim& size = x.shape()[static_cast<std::size_t>(axis)];
  if (block < 0 || v.rank() != x.rank())
    return node.error("attribute 'block_size' is ", block, " for ", v.type());
  if (!size.is_constant()) return node.unsupported("the size ", size, " must be a number");
  std::vector<std::int64_t> blocks;
  for (std::int64_t i = 0; i < size.value(); ++i) blocks.push_back(i / block);
  return node.b.call("gather", {v, node.vector_of(blocks)}, {{"axis", axis}});
}

/// The dtype of the steps: that of the zero point, or the one that is asked for.
Result<Dtype> step_dtype(NodeCall& node, Value zero) {
  if (zero) return zero.dtype();
  const Dtype out = TESSERA_TRY(node.dtype("output_dtype", Dtype::u8));
  if (!ir::is_integer(out)) return node.error("attribute 'output_dtype' is ", out);
  return out;
}

Result<Items> map_quantize(NodeCall& node) {
  const Value x = node.in(0), scale = node.in(1), zero = node.has(2) ? node.in(2) : Value();
  TESSERA_TRY(node.status());
  const std::int64_t axis = TESSERA_TRY(quantised_axis(node, x));
  return Items{quantised(cast(x, scale.dtype()), TESSERA_TRY(spread(node, scale, x, axis)),
                         TESSERA_TRY(spread(node, zero, x, axis)), TESSERA_TRY(step_dtype(node, zero)))};
}

Result<Items> map_dequantize(NodeCall& node) {
  const Value x = node.in(0), scale = node.in(1), zero = node.has(2) ? node.in(2) : Value();
  TESSERA_TRY(node.status());
  const std::int64_t axis = TESSERA_TRY(quantised_axis(node, x));
  Value steps = cast(x, Dtype::i32);
  if (zero) steps = steps - cast(TESSERA_TRY(spread(node, zero, x, axis)), Dtype::i32);
  return Items{cast(steps, scale.dtype()) * TESSERA_TRY(spread(node, scale, x, axis))};
}

Result<Items> map_dynamic_quantize(NodeCall& node) {
  const Value x = node.in(0);
  TESSERA_TRY(node.status());
  const DynamicallyQuantised out = dynamically_quantised(x);
  return Items{out.steps, out.scale, out.zero};
}

/// Integers minus their zero point, in i32. `axis` is where a zero point of rank 1 goes, counted from the
/// end.
Value centred(Value x, Value zero, std::size_t from_end) {
  const Value wide = cast(x, Dtype::i32);
  if (!zero || !x) return wide;
  if (zero.rank() == 1) zero = along_axis(zero, x.rank(), static_cast<std::int64_t>(x.rank() - from_end));
  return wide - cast(zero, Dtype::i32);
}

Result<void> check_operands(NodeCall& node, Value a, Value b) {
  TESSERA_TRY(node.status());
  if (a.rank() == 0 || b.rank() == 0) return node.error("the operands are ", a.type(), " and ", b.type());
  return {};
}

Result<Items> map_matmul_integer(NodeCall& node) {
  const Value a = node.in(0), b = node.in(1);
  TESSERA_TRY(check_operands(node, a, b));
  return Items{matmul(centred(a, node.in_or_none(2), std::min<std::size_t>(2, a.rank())),
                      centred(b, node.in_or_none(3), 1))};
}

Result<Items> map_qlinear_matmul(NodeCall& node) {
  const Value a = node.in(0), b = node.in(3), y_zero = node.in(7);
  TESSERA_TRY(check_operands(node, a, b));
  const Value product =
      matmul(centred(a, node.in(2), std::min<std::size_t>(2, a.rank())), centred(b, node.in(5), 1));
  const Value scale_a = along_axis(node.in(1), a.rank(), static_cast<std::int64_t>(a.rank()) - 2);
  const Value real = cast(product, Dtype::f32) * scale_a * node.in(4);
  return Items{quantised(real, node.in(6), y_zero, y_zero.dtype())};
}

Result<Value> integer_convolution(NodeCall& node, Value x, Value w, Value bias) {
  TESSERA_TRY(node.status());
  auto kernel = TESSERA_TRY(node.numbers_of_shape(w));
  if (kernel.size() < 3) return node.error("the weights are ", w.type(), ", expected rank 3 or more");
  kernel.erase(kernel.begin(), kernel.begin() + 2);
  const auto window = TESSERA_TRY(window_attributes(node, x, std::move(kernel)));
  Values inputs{x, w};
  if (bias) inputs.push_back(bias);
  return node.b.call("conv", inputs,
                     {{"strides", window.strides},
                      {"pads", window.pads},
                      {"dilations", window.dilations},
                      {"groups", node.integer("group", 1)}});
}

Result<Items> map_conv_integer(NodeCall& node) {
  const Value x = node.in(0), w = node.in(1);
  TESSERA_TRY(node.status());
  return Items{TESSERA_TRY(integer_convolution(node, centred(x, node.in_or_none(2), x.rank()),
                                               centred(w, node.in_or_none(3), w.rank()), {}))};
}

Result<Items> map_qlinear_conv(NodeCall& node) {
  const Value x = node.in(0), w = node.in(3), y_zero = node.in(7);
  TESSERA_TRY(node.status());
  const Value sums = TESSERA_TRY(integer_convolution(node, centred(x, node.in(2), x.rank()),
                                                     centred(w, node.in(5), w.rank()), node.in_or_none(8)));
  const Value w_scale = along_axis(node.in(4), x.rank(), 1);
  const Value real = cast(sums, Dtype::f32) * reshape(node.in(1), {}) * w_scale;
  return Items{quantised(real, reshape(node.in(6), {}), reshape(y_zero, {}), y_zero.dtype())};
}

constexpr Mapping quantised_table[] = {
    {"ConvInteger", map_conv_integer},
    {"DequantizeLinear", map_dequantize},
    {"DynamicQuantizeLinear", map_dynamic_quantize},
    {"MatMulInteger", map_matmul_integer},
    {"QLinearConv", map_qlinear_conv},
    {"QLinearMatMul", map_qlinear_matmul},
    {"QuantizeLinear", map_quantize},
};

}  // namespace

std::span<const Mapping> tessera::onnx::quantised_mappings() { return quantised_table; }
