// Operators that work element by element, where a card does not have the operator's own attributes.
#include <algorithm>
#include <limits>

#include "tessera/onnx/mapping.h"

using namespace tessera;
using namespace tessera::onnx;

namespace {

Value compare(std::string_view op, Value x, double y) {
  return x ? x.builder->call(op, {x, number_like(x, y)}) : x;
}

/// All inputs combined from the left by one op.
template <const std::string_view& op>
Result<Items> map_fold(NodeCall& node) {
  const Values all = node.all();
  Value out = all.empty() ? Value() : all[0];
  for (std::size_t i = 1; i < all.size(); ++i) out = node.b.call(op, {out, all[i]});
  return Items{out};
}
constexpr std::string_view add_op = "add", max_op = "maximum", min_op = "minimum";

Result<Items> map_mean(NodeCall& node) {
  const Value sum = TESSERA_TRY(map_fold<add_op>(node))[0].value;
  return Items{sum / static_cast<double>(std::max<std::size_t>(1, node.input_count()))};
}

/// A card that takes the attributes `alpha` and so on as scalar inputs.
Value with_scalars(NodeCall& node, std::string_view op, std::initializer_list<double> scalars) {
  const Value x = node.in(0);
  Values inputs{x};
  for (double scalar : scalars) inputs.push_back(number_like(x, scalar));
  return node.b.call(op, inputs);
}

Result<Items> map_elu(NodeCall& node) { return Items{with_scalars(node, "elu", {node.number("alpha", 1)})}; }
Result<Items> map_leaky_relu(NodeCall& node) {
  return Items{with_scalars(node, "leaky_relu", {node.number("alpha", 0.01)})};
}
Result<Items> map_hard_sigmoid(NodeCall& node) {
  return Items{with_scalars(node, "hard_sigmoid", {node.number("alpha", 0.2), node.number("beta", 0.5)})};
}
Result<Items> map_selu(NodeCall& node) {
  const double alpha = node.number("alpha", node.opset < 6 ? 1.6732 : 1.67326319217681884765625);
  const double gamma = node.number("gamma", node.opset < 6 ? 1.0507 : 1.05070102214813232421875);
  return Items{with_scalars(node, "elu", {alpha}) * gamma};
}
Result<Items> map_celu(NodeCall& node) {
  const Value x = node.in(0);
  const double alpha = node.number("alpha", 1);
  const Value below = unary("expm1", x / alpha) * alpha;
  return Items{node.b.call("maximum", {x, number_like(x, 0)}) +
               node.b.call("minimum", {below, number_like(x, 0)})};
}
Result<Items> map_thresholded_relu(NodeCall& node) {
  const Value x = node.in(0);
  return Items{where(compare("gt", x, node.number("alpha", 1)), x, number_like(x, 0))};
}
Result<Items> map_shrink(NodeCall& node) {
  const Value x = node.in(0);
  const double bias = node.number("bias", 0), lambda = node.number("lambd", 0.5);
  const Value above = where(compare("gt", x, lambda), x - bias, number_like(x, 0));
  return Items{where(compare("lt", x, -lambda), x + bias, above)};
}
Result<Items> map_gelu(NodeCall& node) {
  const std::string approximate = node.text("approximate", "none");
  return Items{unary(approximate == "tanh" ? "gelu_tanh" : "gelu", node.in(0))};
}

Result<Items> map_clip_by_attributes(NodeCall& node) {
  Value x = node.in(0);
  if (node.attribute("min") != nullptr)
    x = node.b.call("maximum", {x, number_like(x, node.number("min", 0))});
  if (node.attribute("max") != nullptr)
    x = node.b.call("minimum", {x, number_like(x, node.number("max", 0))});
  return Items{unary("identity", x)};
}
Result<Items> map_clip(NodeCall& node) {
  Value x = node.in(0);
  if (node.has(1)) x = node.b.call("maximum", {x, node.in(1)});
  if (node.has(2)) x = node.b.call("minimum", {x, node.in(2)});
  return Items{unary("identity", x)};
}

Result<Items> map_cast(NodeCall& node) {
  if (node.opset >= 6) return Items{cast(node.in(0), TESSERA_TRY(node.dtype("to", Dtype::f32)))};
  const std::string name = node.text("to", "");
  constexpr std::pair<std::string_view, Dtype> names[] = {
      {"FLOAT", Dtype::f32},  {"DOUBLE", Dtype::f64}, {"FLOAT16", Dtype::f16}, {"INT8", Dtype::i8},
      {"INT16", Dtype::i16},  {"INT32", Dtype::i32},  {"INT64", Dtype::i64},   {"UINT8", Dtype::u8},
      {"UINT16", Dtype::u16}, {"UINT32", Dtype::u32}, {"UINT64", Dtype::u64},  {"BOOL", Dtype::boolean}};
  for (const auto& [known, dtype] : names)
    if (known == name) return Items{cast(node.in(0), dtype)};
  return node.unsupported("attribute 'to' is ", shown(name), ", which no tensor here has");
}
Result<Items> map_cast_like(NodeCall& node) {
  const Value like = node.in(1);
  TESSERA_TRY(node.status());
  return Items{cast(node.in(0), like.dtype())};
}

Result<Items> map_is_inf(NodeCall& node) {
  const Value x = node.in(0);
  const bool negative = node.flag("detect_negative", true), positive = node.flag("detect_positive", true);
  Value out = unary("isinf", x);
  if (!negative) out = node.b.call("logical_and", {out, compare("gt", x, 0)});
  if (!positive) out = node.b.call("logical_and", {out, compare("lt", x, 0)});
  return Items{out};
}

Result<Items> map_mod(NodeCall& node) {
  return Items{node.b.call(node.flag("fmod", false) ? "fmod" : "mod", {node.in(0), node.in(1)})};
}

Result<Items> map_bit_shift(NodeCall& node) {
  const std::string direction = node.text("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    return node.error("attribute 'direction' is ", shown(direction), ", expected 'LEFT' or 'RIGHT'");
  return Items{node.b.call(direction == "LEFT" ? "shift_left" : "shift_right", {node.in(0), node.in(1)})};
}

/// The result has the dtype of the base; an exponent of another dtype must not lose its fraction.
Result<Items> map_pow(NodeCall& node) {
  const Value base = node.in(0);
  Value exponent = node.in(1);
  TESSERA_TRY(node.status());
  if (node.opset < 7 && node.attribute("axis") != nullptr && exponent.rank() > 0) {
    Shape shape = exponent.shape();
    const std::int64_t axis = TESSERA_TRY(node.axis(node.integer("axis", -1), base.rank()));
    for (std::size_t i = static_cast<std::size_t>(axis) + exponent.rank(); i < base.rank(); ++i)
      shape.push_back(1);
    exponent = reshape(exponent, shape);
  }
  if (ir::is_float(exponent.dtype()) && !ir::is_float(base.dtype()))
    return Items{
        cast(node.b.call("pow", {cast(base, Dtype::f64), cast(exponent, Dtype::f64)}), base.dtype())};
  return Items{node.b.call("pow", {base, cast(exponent, base.dtype())})};
}

Result<Items> map_prelu(NodeCall& node) {
  const Value x = node.in(0);
  Value slope = node.in(1);
  TESSERA_TRY(node.status());
  if (node.opset < 7 && slope.rank() == 1 && x.rank() > 2 && !(slope.shape()[0] == Dim(1))) {
    Shape shape = slope.shape();
    shape.resize(x.rank() - 1, Dim(1));
    slope = reshape(slope, shape);
  }
  return Items{node.b.call("prelu", {x, slope})};
}

Result<Items> map_identity(NodeCall& node) { return Items{node.item(0)}; }

// ---- dropout

Value all_true(NodeCall& node, Value x, Dtype dtype) { return op::full(node.b, 1, {dtype, x.shape()}); }

Result<Items> map_old_dropout(NodeCall& node) {
  const Value x = node.in(0);
  TESSERA_TRY(node.status());
  if (node.opset < 7 && !node.flag("is_test", false))
    return node.unsupported("attribute 'is_test' is 0: training is not imported");
  return Items{x, all_true(node, x, node.opset < 10 ? x.dtype() : Dtype::boolean)};
}

Result<Items> map_dropout(NodeCall& node) {
  const Value x = node.in(0);
  const bool is_training = node.has(2) && TESSERA_TRY(node.integer_in(2)) != 0;
  const double ratio = node.has(1) ? TESSERA_TRY(node.number_in(1)) : 0.5;
  TESSERA_TRY(node.status());
  if (!is_training || ratio == 0) return Items{x, all_true(node, x, Dtype::boolean)};
  const Value seed = node.b.constant(static_cast<double>(node.integer("seed", 0)), Dtype::i64);
  const Value random =
      node.b.call("random_uniform", {node.b.constant(0, Dtype::f64), node.b.constant(1, Dtype::f64), seed},
                  {{"shape", x.shape()}, {"dtype", Dtype::f32}});
  const Value mask = compare("ge", random, ratio);
  return Items{where(mask, x / (1 - ratio), number_like(x, 0)), mask};
}

// ---- softmax and its kin

/// Before version 13 the axes from `axis` on count as one.
template <class F>
Result<Items> over_rest(NodeCall& node, F&& along_last) {
  const Value x = node.in(0);
  TESSERA_TRY(node.status());
  const std::int64_t axis =
      TESSERA_TRY(node.axis(node.integer("axis", 1), std::max<std::size_t>(1, x.rank())));
  const auto sizes = std::span<const Dim>(x.shape().begin(), x.shape().end());
  const auto split = static_cast<std::size_t>(axis);
  const Value flat = reshape(x, Shape{ir::product(sizes.first(split)), ir::product(sizes.subspan(split))});
  return Items{reshape(along_last(flat, std::int64_t{1}), x.shape())};
}

template <const std::string_view& op>
Result<Items> map_softmax(NodeCall& node) {
  const auto apply = [&](Value x, std::int64_t axis) { return node.b.call(op, {x}, {{"axis", axis}}); };
  if (node.opset < 13) return over_rest(node, apply);
  return Items{apply(node.in(0), node.integer("axis", -1))};
}
constexpr std::string_view softmax_op = "softmax", log_softmax_op = "log_softmax";

Value hardmax(Value x, std::int64_t axis) {
  if (!x) return x;
  op::Builder& b = *x.builder;
  const Value best = b.call("argmax", {x}, {{"axis", axis}, {"keepdims", true}});
  const auto at = static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(x.rank()) : axis);
  if (!best || at >= x.rank()) return best;
  Shape shape(x.rank(), Dim(1));
  shape[at] = x.shape()[at];
  const Value places = reshape(op::range(b, 0, x.shape()[at]), shape);
  return cast(b.call("eq", {places, best}), x.dtype());
}

Result<Items> map_hardmax(NodeCall& node) {
  if (node.opset < 13) return over_rest(node, hardmax);
  return Items{hardmax(node.in(0), node.integer("axis", -1))};
}

constexpr std::string_view bit_and = "bit_and", bit_or = "bit_or", bit_xor = "bit_xor";

Result<Items> map_bit_not(NodeCall& node) { return Items{unary("bit_not", node.in(0))}; }

constexpr Mapping elementwise_table[] = {
    {"BitShift", map_bit_shift},
    {"BitwiseAnd", map_fold<bit_and>},
    {"BitwiseNot", map_bit_not},
    {"BitwiseOr", map_fold<bit_or>},
    {"BitwiseXor", map_fold<bit_xor>},
    {"Cast", map_cast},
    {"CastLike", map_cast_like},
    {"Celu", map_celu},
    {"Clip", map_clip_by_attributes},
    {"Clip", map_clip, 11},
    {"Dropout", map_old_dropout},
    {"Dropout", map_dropout, 12},
    {"Elu", map_elu},
    {"Gelu", map_gelu},
    {"Gelu", map_gelu, 1, "com.microsoft"},
    {"HardSigmoid", map_hard_sigmoid},
    {"Hardmax", map_hardmax},
    {"Identity", map_identity},
    {"IsInf", map_is_inf},
    {"LeakyRelu", map_leaky_relu},
    {"LogSoftmax", map_softmax<log_softmax_op>},
    {"Max", map_fold<max_op>},
    {"Mean", map_mean},
    {"Min", map_fold<min_op>},
    {"Mod", map_mod},
    {"PRelu", map_prelu},
    {"Pow", map_pow},
    {"Selu", map_selu},
    {"Shrink", map_shrink},
    {"Softmax", map_softmax<softmax_op>},
    {"Sum", map_fold<add_op>},
    {"ThresholdedRelu", map_thresholded_relu},
};

}  // namespace

std::span<const Mapping> tessera::onnx::elementwise_mappings() { return elementwise_table; }
