// Convolutions, pooling, normalisation, losses.
#include <algorithm>
#include <limits>

#include "tessera/onnx/operators/window_attributes.h"

using namespace tessera;
using namespace tessera::onnx;

namespace {

// ---- convolutions

/// The sizes of a kernel, behind its two axes of channels.
Result<std::vector<std::int64_t>> kernel_sizes(NodeCall& node, Value weights) {
  auto sizes = TESSERA_TRY(node.numbers_of_shape(weights));
  if (sizes.size() < 3) return node.error("input 1 is ", weights.type(), ", expected rank 3 or more");
  sizes.erase(sizes.begin(), sizes.begin() + 2);
  return sizes;
}

Values convolution_inputs(NodeCall& node) {
  Values out{node.in(0), node.in(1)};
  if (node.has(2)) out.push_back(node.in(2));
  return out;
}

Result<Items> map_conv(NodeCall& node) {
  const Values inputs = convolution_inputs(node);
  TESSERA_TRY(node.status());
  const auto window =
      TESSERA_TRY(window_attributes(node, inputs[0], TESSERA_TRY(kernel_sizes(node, inputs[1]))));
  return Items{node.b.call("conv", inputs,
                           {{"strides", window.strides},
                            {"pads", window.pads},
                            {"dilations", window.dilations},
                            {"groups", node.integer("group", 1)}})};
}

/// What is cut off (pads) or added (output_padding) so that the result has the sizes that are asked for.
Result<void> fit_output(NodeCall& node, Value x, std::span<const std::int64_t> asked,
                        WindowAttributes& window, std::vector<std::int64_t>& output_padding) {
  const std::size_t axes = window.kernel.size();
  for (std::size_t i = 0; i < axes; ++i) {
    const Dim& size = x.shape()[2 + i];
    if (!size.is_constant()) return node.unsupported("the sizes of ", x.type(), " must be numbers");
    const std::int64_t span = (window.kernel[i] - 1) * window.dilations[i] + 1;
    const std::int64_t wanted = asked.empty() ? size.value() * window.strides[i] : asked[i];
    const std::int64_t total = window.strides[i] * (size.value() - 1) + output_padding[i] + span - wanted;
    if (total < 0) output_padding[i] -= total;
    const std::int64_t cut = std::max<std::int64_t>(0, total), less = cut / 2;
    window.pads[i] = window.auto_pad == "SAME_UPPER" ? less : cut - less;
    window.pads[axes + i] = cut - window.pads[i];
  }
  return {};
}

Result<Items> map_conv_transpose(NodeCall& node) {
  const Values inputs = convolution_inputs(node);
  TESSERA_TRY(node.status());
  auto window = TESSERA_TRY(window_attributes(node, inputs[0], TESSERA_TRY(kernel_sizes(node, inputs[1]))));
  const std::size_t axes = window.kernel.size();
  auto padding = node.integers("output_padding"), asked = node.integers("output_shape");
  TESSERA_TRY(node.status());
  if (padding.empty()) padding.assign(axes, 0);
  if (asked.size() == axes + 2) asked.erase(asked.begin(), asked.begin() + 2);
  if (padding.size() != axes || (!asked.empty() && asked.size() != axes))
    return node.error("attributes 'output_padding' and 'output_shape' must have ", axes, " entries");
  if (!asked.empty() || window.auto_pad.rfind("SAME", 0) == 0)
    TESSERA_TRY(fit_output(node, inputs[0], asked, window, padding));
  return Items{node.b.call("conv_transpose", inputs,
                           {{"strides", window.strides},
                            {"pads", window.pads},
                            {"dilations", window.dilations},
                            {"groups", node.integer("group", 1)},
                            {"output_padding", padding}})};
}

// ---- pooling

Result<WindowAttributes> pool_window(NodeCall& node) {
  const Value x = node.in(0);
  TESSERA_TRY(node.status());
  return window_attributes(node, x, node.integers("kernel_shape"));
}

/// Indices among the spatial elements of a channel become indices among all elements, in the order asked for.
Result<Value> global_indices(NodeCall& node, Value x, Value indices) {
  const auto sizes = TESSERA_TRY(node.numbers_of_shape(x));
  std::int64_t spatial = 1;
  for (std::size_t i = 2; i < sizes.size(); ++i) spatial *= sizes[i];
  if (node.integer("storage_order", 0) != 0) {
    if (sizes.size() != 4) return node.unsupported("attribute 'storage_order' is 1 for ", x.type());
    const Value width = node.b.constant(static_cast<double>(sizes[3]), Dtype::i64);
    const Value row = node.b.call("floor_div", {indices, width}),
                column = node.b.call("mod", {indices, width});
    indices = column * static_cast<double>(sizes[2]) + row;
  }
  Shape channels(x.rank(), Dim(1));
  channels[0] = sizes[0];
  channels[1] = sizes[1];
  return indices +
         reshape(op::range(node.b, 0, sizes[0] * sizes[1]), channels) * static_cast<double>(spatial);
}

/// The pooling ops allow padding of at most half a window. More is added to the tensor itself, which says
/// whether it was.
bool pad_first(NodeCall& node, Value& x, WindowAttributes& window, double value) {
  if (!x) return false;
  const std::size_t axes = window.kernel.size();
  bool is_more = false;
  for (std::size_t i = 0; i < 2 * axes; ++i) {
    const std::int64_t span = (window.kernel[i % axes] - 1) * window.dilations[i % axes] + 1;
    is_more = is_more || window.pads[i] > span / 2;
  }
  if (!is_more) return false;
  Shape before(2, Dim(0)), after(2, Dim(0));
  for (std::size_t i = 0; i < axes; ++i) {
    before.emplace_back(window.pads[i]);
    after.emplace_back(window.pads[axes + i]);
  }
  x = node.b.call("pad", {x, node.b.constant(value, x.dtype())}, {{"before", before}, {"after", after}});
  std::fill(window.pads.begin(), window.pads.end(), 0);
  return true;
}

Result<Items> map_max_pool(NodeCall& node) {
  auto window = TESSERA_TRY(pool_window(node));
  Value x = node.in(0);
  const bool is_padded = pad_first(node, x, window, -std::numeric_limits<double>::infinity());
  TESSERA_TRY(node.status());
  if (is_padded && node.node.outputs.size() > 1)
    return node.unsupported("output 1 with padding of more than half a window");
  const Values pooled = node.b.call_all("max_pool", {x},
                                        {{"kernel", window.kernel},
                                         {"strides", window.strides},
                                         {"pads", window.pads},
                                         {"dilations", window.dilations},
                                         {"ceil_mode", node.flag("ceil_mode", false)}});
  TESSERA_TRY(node.status());
  if (node.node.outputs.size() < 2) return Items{pooled[0]};
  const Value indices = TESSERA_TRY(global_indices(node, x, pooled[1]));
  return Items{pooled[0], indices};
}

Value average(NodeCall& node, Value x, const WindowAttributes& window, bool counts_padding) {
  return node.b.call("avg_pool", {x},
                     {{"kernel", window.kernel},
                      {"strides", window.strides},
                      {"pads", window.pads},
                      {"ceil_mode", node.flag("ceil_mode", false)},
                      {"count_include_pad", counts_padding}});
}

/// A window with gaps: the sum of what it sees is a convolution of each channel with ones.
Result<Value> dilated_average(NodeCall& node, Value x, const WindowAttributes& window, bool counts_padding) {
  if (node.flag("ceil_mode", false)) return node.unsupported("attribute 'ceil_mode' is 1 with dilations");
  Shape images{x.shape()[0] * x.shape()[1], Dim(1)}, kernel{Dim(1), Dim(1)};
  for (std::size_t i = 2; i < x.rank(); ++i) images.push_back(x.shape()[i]);
  double taps = 1;
  for (const std::int64_t size : window.kernel) {
    kernel.emplace_back(size);
    taps *= static_cast<double>(size);
  }
  const auto seen = [&](Value v) {
    return node.b.call("conv", {reshape(v, images), op::full(node.b, 1, {x.dtype(), kernel})},
                       {{"strides", window.strides}, {"pads", window.pads}, {"dilations", window.dilations}});
  };
  const Value sums = seen(x);
  const Value mean = counts_padding ? sums / taps : sums / seen(op::full(node.b, 1, x.type()));
  TESSERA_TRY(node.status());
  Shape shape{x.shape()[0], x.shape()[1]};
  for (std::size_t i = 2; i < mean.rank(); ++i) shape.push_back(mean.shape()[i]);
  return reshape(mean, shape);
}

Result<Items> map_average_pool(NodeCall& node) {
  auto window = TESSERA_TRY(pool_window(node));
  const bool counts_padding = node.flag("count_include_pad", false);
  if (std::any_of(window.dilations.begin(), window.dilations.end(), [](std::int64_t d) { return d != 1; }))
    return Items{TESSERA_TRY(dilated_average(node, node.in(0), window, counts_padding))};
  Value x = node.in(0), ones = counts_padding ? x : op::full(node.b, 1, x.type());
  WindowAttributes same = window;
  if (!pad_first(node, x, window, 0)) return Items{average(node, x, window, counts_padding)};
  const Value mean = average(node, x, window, true);
  if (counts_padding) return Items{mean};
  pad_first(node, ones, same, 0);
  return Items{mean / average(node, ones, same, true)};
}

Value power(Value x, double exponent) {
  return x ? x.builder->call("pow", {x, x.builder->constant(exponent, x.dtype())}) : x;
}

Result<double> norm_order(NodeCall& node) {
  const Attribute* p = node.attribute("p");
  const double order = p != nullptr && std::holds_alternative<float>(p->value)
                           ? node.number("p", 2)
                           : static_cast<double>(node.integer("p", 2));
  TESSERA_TRY(node.status());
  if (!(order > 0)) return node.error("attribute 'p' is ", order, ", expected more than 0");
  return order;
}

Result<Items> map_lp_pool(NodeCall& node) {
  const auto window = TESSERA_TRY(pool_window(node));
  const double p = TESSERA_TRY(norm_order(node));
  double taps = 1;
  for (const std::int64_t size : window.kernel) taps *= static_cast<double>(size);
  const Value mean = average(node, power(unary("abs", node.in(0)), p), window, true);
  return Items{power(mean * taps, 1 / p)};
}

Result<Items> map_global_lp_pool(NodeCall& node) {
  const Value x = node.in(0);
  const double p = TESSERA_TRY(norm_order(node));
  return Items{power(sum(power(unary("abs", x), p), axes_from(2, x.rank()), true), 1 / p)};
}

Result<Items> map_max_unpool(NodeCall& node) {
  const Value x = node.in(0), indices = node.in(1);
  const auto window = TESSERA_TRY(pool_window(node));
  auto sizes = TESSERA_TRY(node.numbers_of_shape(x));
  const std::size_t axes = window.kernel.size();
  for (std::size_t i = 0; i < axes; ++i)
    sizes[2 + i] =
        (sizes[2 + i] - 1) * window.strides[i] + window.kernel[i] - window.pads[i] - window.pads[axes + i];
  const Shape shape = ir::shape_of(sizes);
  const Value flat =
      op::full(node.b, 0, {x.dtype(), {ir::product(std::span<const Dim>(shape.begin(), shape.end()))}});
  const auto flattened = [&](Value v) { return node.b.call("reshape", {v}, {{"shape", Shape{-1}}}); };
  Value out = reshape(
      node.b.call("scatter_elements", {flat, flattened(indices), flattened(x)}, {{"axis", 0}}), shape);
  if (!node.has(2)) return Items{out};
  const auto asked = TESSERA_TRY(node.integers_in(2));
  if (asked.size() != sizes.size())
    return node.error("input 2 has ", asked.size(), " sizes, expected ", sizes.size());
  Shape after;
  for (std::size_t i = 0; i < asked.size(); ++i) after.push_back(asked[i] - sizes[i]);
  return Items{node.b.call("pad", {out, node.b.constant(0, x.dtype())},
                           {{"before", Shape(asked.size(), Dim(0))}, {"after", after}})};
}

// ---- normalisation

Value mean_of(Value x, std::vector<std::int64_t> axes) {
  return x ? x.builder->call("mean", {x}, {{"axes", std::move(axes)}, {"keepdims", true}}) : x;
}

/// One number per channel, in a shape that broadcasts against x.
Value per_channel(Value v, Value x) {
  if (!v || !x) return {};
  Shape shape(x.rank() < 2 ? 1 : x.rank() - 1, Dim(1));
  shape[0] = v.rank() == 0 ? Dim(1) : v.shape()[0];
  return reshape(v, shape);
}

Result<Items> map_batch_norm(NodeCall& node) {
  const Value x = node.in(0), scale = node.in(1), bias = node.in(2), mean = node.in(3), variance = node.in(4);
  const double epsilon = node.number("epsilon", 1e-5), momentum = node.number("momentum", 0.9);
  TESSERA_TRY(node.status());
  if (node.integer("spatial", 1) != 1) return node.unsupported("attribute 'spatial' is 0");
  if (!node.flag("training_mode", false))
    return Items{node.b.call("batch_norm", {x, scale, bias, mean, variance}, {{"epsilon", epsilon}})};
  const Values trained = node.b.call_all("batch_norm_training", {x, scale, bias}, {{"epsilon", epsilon}});
  TESSERA_TRY(node.status());
  return Items{trained[0], mean * momentum + trained[1] * (1 - momentum),
               variance * momentum + trained[2] * (1 - momentum)};
}

Result<Items> map_instance_norm(NodeCall& node) {
  const Value x = node.in(0);
  TESSERA_TRY(node.status());
  const Value centred = x - mean_of(x, axes_from(2, x.rank()));
  const Value variance = mean_of(unary("square", centred), axes_from(2, x.rank()));
  const Value normal = centred * unary("rsqrt", variance + node.number("epsilon", 1e-5));
  return Items{normal * per_channel(node.in(1), x) + per_channel(node.in(2), x)};
}

Result<Items> map_layer_norm(NodeCall& node) {
  const Value x = node.in(0);
  TESSERA_TRY(node.status());
  const auto first = static_cast<std::size_t>(TESSERA_TRY(node.axis(node.integer("axis", -1), x.rank())));
  const Value mean = mean_of(x, axes_from(first, x.rank())), centred = x - mean;
  const Value variance = mean_of(unary("square", centred), axes_from(first, x.rank()));
  const Value inverse = unary("rsqrt", variance + node.number("epsilon", 1e-5));
  Value y = centred * inverse * node.in(1);
  if (node.has(2)) y = y + node.in(2);
  return Items{y, mean, inverse};
}

Result<Items> map_mean_variance_norm(NodeCall& node) {
  const Value x = node.in(0);
  auto axes = node.integers("axes");
  if (axes.empty()) axes = {0, 2, 3};
  const Value centred = x - mean_of(x, axes);
  return Items{centred / (unary("sqrt", mean_of(unary("square", centred), axes)) + 1e-9)};
}

Result<Items> map_lp_normalization(NodeCall& node) {
  const Value x = node.in(0);
  const std::string_view norm = node.integer("p", 2) == 1 ? "l1_norm" : "l2_norm";
  return Items{x /
               node.b.call(norm, {x}, {{"axes", std::vector{node.integer("axis", -1)}}, {"keepdims", true}})};
}

/// The sum of squares over a window of channels, as a sum of shifted copies.
Result<Items> map_lrn(NodeCall& node) {
  const Value x = node.in(0);
  const std::int64_t size = node.integer("size", 0);
  TESSERA_TRY(node.status());
  if (size < 1 || size > 4096 || x.rank() < 2)
    return node.error("attribute 'size' is ", size, " for ", x.type());
  Shape before(x.rank(), Dim(0)), after(x.rank(), Dim(0));
  before[1] = (size - 1) / 2;
  after[1] = size - 1 - (size - 1) / 2;
  const Value squares = node.b.call("pad", {unary("square", x), node.b.constant(0, x.dtype())},
                                    {{"before", before}, {"after", after}});
  Value total = slice(squares, 1, 0, x.shape()[1]);
  for (std::int64_t i = 1; i < size; ++i) total = total + slice(squares, 1, i, x.shape()[1] + Dim(i));
  const double alpha = node.number("alpha", 0.0001) / static_cast<double>(size);
  return Items{x / power(total * alpha + node.number("bias", 1), node.number("beta", 0.75))};
}

// ---- products

Result<Items> map_gemm(NodeCall& node) {
  Value a = node.in(0), b = node.in(1);
  TESSERA_TRY(node.status());
  if (a.rank() != 2 || b.rank() != 2)
    return node.error("inputs 0 and 1 are ", a.type(), " and ", b.type(), ", expected matrices");
  if (node.flag("transA", false)) a = transpose_matrix(a);
  if (node.flag("transB", false)) b = transpose_matrix(b);
  Value y = matmul(a, b);
  if (const double alpha = node.number("alpha", 1); alpha != 1) y = y * alpha;
  if (!node.has(2)) return Items{y};
  const double beta = node.number("beta", 1);
  return Items{y + (beta == 1 ? node.in(2) : node.in(2) * beta)};
}

// ---- losses

/// The loss of log probabilities [N, C, …] at classes [N, …], by weights per class and a class that counts
/// nothing.
Result<Value> negative_log_likelihood(NodeCall& node, Value log_probability, std::size_t weight_input) {
  const Value target = cast(node.in(1), Dtype::i64);
  TESSERA_TRY(node.status());
  const bool ignores = node.attribute("ignore_index") != nullptr;
  const Value ignored = node.b.constant(static_cast<double>(node.integer("ignore_index", 0)), Dtype::i64);
  const Value counts = node.b.call("ne", {target, ignored});
  const Value safe = ignores ? where(counts, target, node.b.constant(0, Dtype::i64)) : target;
  const std::vector<std::int64_t> class_axis{1};
  const Value at = node.b.call("unsqueeze", {safe}, {{"axes", class_axis}});
  Value loss = -node.b.call("squeeze", {node.b.call("gather_elements", {log_probability, at}, {{"axis", 1}})},
                            {{"axes", class_axis}});
  Value weight = node.has(weight_input) ? node.b.call("gather", {node.in(weight_input), safe})
                                        : op::full(node.b, 1, {log_probability.dtype(), target.shape()});
  if (ignores) weight = weight * cast(counts, log_probability.dtype());
  loss = loss * weight;
  const std::string reduction = node.text("reduction", "mean");
  if (reduction == "none") return loss;
  const Value total = node.b.call("sum", {loss});
  return reduction == "sum" ? total : total / node.b.call("sum", {weight});
}

Result<Items> map_nll_loss(NodeCall& node) {
  return Items{TESSERA_TRY(negative_log_likelihood(node, node.in(0), 2))};
}

Result<Items> map_cross_entropy(NodeCall& node) {
  const Value log_probability = node.b.call("log_softmax", {node.in(0)}, {{"axis", 1}});
  return Items{TESSERA_TRY(negative_log_likelihood(node, log_probability, 2)), log_probability};
}

/// Before version 21 scale and bias are per group.
Result<Items> map_group_norm(NodeCall& node) {
  const Value x = node.in(0);
  const std::int64_t groups = node.integer("num_groups", 0);
  TESSERA_TRY(node.status());
  if (groups < 1 || x.rank() < 3)
    return node.error("input 0 is ", x.type(), " and attribute 'num_groups' is ", groups);
  const auto per_channel = [&](Value v) {
    if (node.opset >= 21 || !v) return v;
    const Dim each = floor_div(x.shape()[1], Dim(groups));
    return reshape(broadcast_to(reshape(v, Shape{Dim(groups), Dim(1)}), Shape{Dim(groups), each}),
                   Shape{Dim(groups) * each});
  };
  return Items{node.b.call("group_norm", {x, per_channel(node.in(1)), per_channel(node.in(2))},
                           {{"groups", groups}, {"epsilon", node.number("epsilon", 1e-5)}})};
}

constexpr Mapping network_table[] = {
    {"AveragePool", map_average_pool},
    {"BatchNormalization", map_batch_norm},
    {"Conv", map_conv},
    {"ConvTranspose", map_conv_transpose},
    {"Gemm", map_gemm},
    {"GlobalLpPool", map_global_lp_pool},
    {"GroupNormalization", map_group_norm, 18},
    {"InstanceNormalization", map_instance_norm},
    {"LRN", map_lrn},
    {"LayerNormalization", map_layer_norm},
    {"LpNormalization", map_lp_normalization},
    {"LpPool", map_lp_pool},
    {"MaxPool", map_max_pool},
    {"MaxUnpool", map_max_unpool},
    {"MeanVarianceNormalization", map_mean_variance_norm},
    {"NegativeLogLikelihoodLoss", map_nll_loss},
    {"SoftmaxCrossEntropyLoss", map_cross_entropy},
};

}  // namespace

std::span<const Mapping> tessera::onnx::network_mappings() { return network_table; }
