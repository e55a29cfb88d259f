// Normalisations: elements are shifted and scaled by the mean and the variance of those they belong with.
#include <cmath>

#include "tessera/op/by_parts.h"
#include "tessera/op/families/make.h"
#include "tessera/op/wide_buffer.h"

using namespace tessera;
using namespace tessera::op;

namespace {

// ---- what they have in common

/// Checks that the inputs from `first` on have the shape `expected`, which is `whose`.
Result<void> check_parameters(const CallInfo& call, std::size_t first, const Shape& expected,
                              std::string_view whose) {
  for (std::size_t i = first; i < call.inputs().size(); ++i) {
    const ValueType& given = call.input(i);
    const std::string what =
        cat(call.input_name(i), " (", given, ") and ", whose, " 'x' (", call.input(0), ")");
    if (given.rank() != expected.size())
      return call.error(what, ": shapes ", given.shape, " and ", expected, " do not agree");
    for (std::size_t axis = 0; axis < expected.size(); ++axis)
      TESSERA_TRY(call.unify(given.shape[axis], expected[axis], what));
  }
  return {};
}

Result<void> check_channels(const CallInfo& call, std::size_t first) {
  const ValueType& x = call.input(0);
  if (x.rank() < 2)
    return call.error("'x' (", x, ") has rank ", x.rank(), ", expected at least 2: batch and channels");
  return check_parameters(call, first, {x.shape[1]}, "the channels of");
}

/// The weight and the bias of a call, where it has them, applied to a normalised element.
struct Affine {
  WideBuffer<double> weight, bias;

  static Result<Affine> load(std::span<const Array> inputs) {
    Affine out;
    if (inputs.size() > 1) out.weight = TESSERA_TRY(WideBuffer<double>::load(inputs[1]));
    if (inputs.size() > 2) out.bias = TESSERA_TRY(WideBuffer<double>::load(inputs[2]));
    return out;
  }
  [[nodiscard]] double operator()(double value, std::int64_t at) const {
    if (weight.size() > 0) value *= weight[at];
    return bias.size() > 0 ? value + bias[at] : value;
  }
};

struct Moments {
  double mean = 0, variance = 0;
};

Moments moments_of(const double* row, std::int64_t length) {
  Moments out;
  for (std::int64_t i = 0; i < length; ++i) out.mean += row[i];
  out.mean /= static_cast<double>(length);
  for (std::int64_t i = 0; i < length; ++i) out.variance += (row[i] - out.mean) * (row[i] - out.mean);
  out.variance /= static_cast<double>(length);
  return out;
}

double mean_square_of(const double* row, std::int64_t length) {
  double total = 0;
  for (std::int64_t i = 0; i < length; ++i) total += row[i] * row[i];
  return total / static_cast<double>(length);
}

/// The channel of each element of a row-major tensor.
struct Channels {
  std::int64_t count = 1, inner = 1;

  explicit Channels(const Extents& shape) : count(shape[1]) {
    for (std::size_t i = 2; i < shape.size(); ++i) inner *= shape[i];
  }
  [[nodiscard]] std::int64_t of(std::int64_t element) const { return element / inner % count; }
};

Value scale_of(const CallInfo& call, Value variance) {
  return unary("rsqrt", variance + call.number("epsilon"));
}

Value mean_of(Builder& b, Value x, const std::vector<std::int64_t>& axes) {
  return b.call("mean", {x}, {{"axes", axes}, {"keepdims", true}});
}

/// With mean 0 and variance 1 over `axes`.
Value normalised(Builder& b, const CallInfo& call, Value x, const std::vector<std::int64_t>& axes) {
  const Value centred = x - mean_of(b, x, axes);
  return centred * scale_of(call, mean_of(b, unary("square", centred), axes));
}

/// y * weight + bias, with parameters that were left out.
Value with_affine(Value y, Value weight, Value bias) {
  if (weight) y = y * weight;
  return bias ? y + bias : y;
}

Value input_or_none(std::span<const Value> inputs, std::size_t i) {
  return i < inputs.size() ? inputs[i] : Value();
}

/// One number per channel, so that it broadcasts over `x`.
Value as_channels(Value parameter, Value x) {
  if (!parameter) return parameter;
  Shape shape(x.rank() - 1, Dim(1));
  shape[0] = x.shape()[1];
  return reshape(parameter, shape);
}

// ---- over the last axes

Result<ValueTypes> infer_last_axes(const CallInfo& call) {
  const Shape& shape = call.input(0).shape;
  const std::size_t axis = TESSERA_TRY(call.axis(call.integer("axis"), shape.size()));
  TESSERA_TRY(check_parameters(call, 1, Shape(shape.begin() + static_cast<std::ptrdiff_t>(axis), shape.end()),
                               cat("the axes from ", axis, " on of")));
  return ValueTypes{call.input(0)};
}

std::vector<std::int64_t> last_axes(const CallInfo& call, std::size_t rank) {
  std::vector<std::int64_t> out;
  for (std::size_t i = value_or_throw(call.axis(call.integer("axis"), rank)); i < rank; ++i)
    out.push_back(static_cast<std::int64_t>(i));
  return out;
}

Values decompose_layer_norm(Builder& b, const CallInfo& call, std::span<const Value> inputs) {
  const Value y = normalised(b, call, inputs[0], last_axes(call, inputs[0].rank()));
  return {with_affine(y, input_or_none(inputs, 1), input_or_none(inputs, 2))};
}

Values decompose_rms_norm(Builder& b, const CallInfo& call, std::span<const Value> inputs) {
  const Value squares = mean_of(b, unary("square", inputs[0]), last_axes(call, inputs[0].rank()));
  return {with_affine(inputs[0] * scale_of(call, squares), input_or_none(inputs, 1), Value())};
}

/// Rows of the last axes lie side by side. `centred`: with the mean subtracted.
template <bool centred>
Result<void> run_last_axes(const CallInfo& call, std::span<const Array> inputs,
                           std::span<const Array> results) {
  auto x = TESSERA_TRY(WideBuffer<double>::load(inputs[0]));
  const Affine affine = TESSERA_TRY(Affine::load(inputs));
  std::int64_t length = 1;
  for (std::int64_t axis : last_axes(call, inputs[0].rank()))
    length *= inputs[0].shape()[static_cast<std::size_t>(axis)];
  for (std::int64_t begin = 0; begin < x.size(); begin += length) {
    double* row = x.data() + begin;
    const Moments moments = centred ? moments_of(row, length) : Moments{0, mean_square_of(row, length)};
    const double scale = 1 / std::sqrt(moments.variance + call.number("epsilon"));
    for (std::int64_t i = 0; i < length; ++i) row[i] = affine((row[i] - moments.mean) * scale, i);
  }
  x.store(results[0]);
  return {};
}

// ---- over groups of channels

Result<ValueTypes> infer_group_norm(const CallInfo& call) {
  TESSERA_TRY(check_channels(call, 1));
  const ValueType& x = call.input(0);
  const std::int64_t groups = call.integer("groups");
  if (groups < 1) return call.error("'groups' is ", groups, ", expected at least 1");
  const Dim rest = floor_mod(x.shape[1], Dim(groups));
  if (ir::provably_different(rest, Dim(0)))
    return call.error("'x' (", x, ") has ", x.shape[1], " channels, which ", groups, " groups do not divide");
  TESSERA_TRY(call.unify(rest, Dim(0), cat("rest of ", x.shape[1], " channels in ", groups, " groups")));
  return ValueTypes{x};
}

Values decompose_group_norm(Builder& b, const CallInfo& call, std::span<const Value> inputs) {
  const Value x = inputs[0];
  const Dim groups(call.integer("groups"));
  Dim length = floor_div(x.shape()[1], groups);
  for (std::size_t i = 2; i < x.rank(); ++i) length = length * x.shape()[i];
  const Value rows = reshape(x, {x.shape()[0], groups, length});
  const Value y = reshape(normalised(b, call, rows, {2}), x.shape());
  return {with_affine(y, as_channels(input_or_none(inputs, 1), x), as_channels(input_or_none(inputs, 2), x))};
}

Result<void> run_group_norm(const CallInfo& call, std::span<const Array> inputs,
                            std::span<const Array> results) {
  auto x = TESSERA_TRY(WideBuffer<double>::load(inputs[0]));
  const Affine affine = TESSERA_TRY(Affine::load(inputs));
  const Channels channels(inputs[0].shape());
  const std::int64_t length = channels.count / call.integer("groups") * channels.inner;
  for (std::int64_t begin = 0; begin < x.size(); begin += length) {
    const Moments moments = moments_of(x.data() + begin, length);
    const double scale = 1 / std::sqrt(moments.variance + call.number("epsilon"));
    for (std::int64_t i = begin; i < begin + length; ++i)
      x[i] = affine((x[i] - moments.mean) * scale, channels.of(i));
  }
  x.store(results[0]);
  return {};
}

// ---- over the batch

Result<ValueTypes> infer_batch_norm(const CallInfo& call) {
  TESSERA_TRY(check_channels(call, 1));
  return ValueTypes{call.input(0)};
}

Values decompose_batch_norm(Builder&, const CallInfo& call, std::span<const Value> inputs) {
  const Value x = inputs[0], mean = as_channels(inputs[3], x), variance = as_channels(inputs[4], x);
  // What does not depend on x is one number per channel.
  const Value factor = scale_of(call, variance) * as_channels(inputs[1], x);
  return {(x - mean) * factor + as_channels(inputs[2], x)};
}

Result<void> run_batch_norm(const CallInfo& call, std::span<const Array> inputs,
                            std::span<const Array> results) {
  auto x = TESSERA_TRY(WideBuffer<double>::load(inputs[0]));
  const Affine affine = TESSERA_TRY(Affine::load(inputs));
  const auto mean = TESSERA_TRY(WideBuffer<double>::load(inputs[3]));
  const auto variance = TESSERA_TRY(WideBuffer<double>::load(inputs[4]));
  const Channels channels(inputs[0].shape());
  for (std::int64_t i = 0; i < x.size(); ++i) {
    const std::int64_t c = channels.of(i);
    x[i] = affine((x[i] - mean[c]) / std::sqrt(variance[c] + call.number("epsilon")), c);
  }
  x.store(results[0]);
  return {};
}

Result<ValueTypes> infer_batch_norm_training(const CallInfo& call) {
  TESSERA_TRY(check_channels(call, 1));
  const ValueType& x = call.input(0);
  const ValueType per_channel{x.dtype, {x.shape[1]}};
  return ValueTypes{x, per_channel, per_channel};
}

Values decompose_batch_norm_training(Builder& b, const CallInfo& call, std::span<const Value> inputs) {
  const Value x = inputs[0];
  std::vector<std::int64_t> axes;
  for (std::size_t i = 0; i < x.rank(); ++i)
    if (i != 1) axes.push_back(static_cast<std::int64_t>(i));
  const Value mean = mean_of(b, x, axes), centred = x - mean;
  const Value variance = mean_of(b, unary("square", centred), axes);
  const Value y =
      centred * (scale_of(call, variance) * as_channels(inputs[1], x)) + as_channels(inputs[2], x);
  const Shape per_channel{x.shape()[1]};
  return {y, reshape(mean, per_channel), reshape(variance, per_channel)};
}

Result<void> run_batch_norm_training(const CallInfo& call, std::span<const Array> inputs,
                                     std::span<const Array> results) {
  auto x = TESSERA_TRY(WideBuffer<double>::load(inputs[0]));
  const Affine affine = TESSERA_TRY(Affine::load(inputs));
  const Channels channels(inputs[0].shape());
  auto mean = TESSERA_TRY(WideBuffer<double>::zeros(channels.count));
  auto variance = TESSERA_TRY(WideBuffer<double>::zeros(channels.count));
  const double elements = static_cast<double>(inputs[0].shape()[0]) * static_cast<double>(channels.inner);
  for (std::int64_t i = 0; i < x.size(); ++i) mean[channels.of(i)] += x[i];
  for (double& m : mean) m /= elements;
  for (std::int64_t i = 0; i < x.size(); ++i) {
    x[i] -= mean[channels.of(i)];
    variance[channels.of(i)] += x[i] * x[i];
  }
  for (double& v : variance) v /= elements;
  for (std::int64_t i = 0; i < x.size(); ++i) {
    const std::int64_t c = channels.of(i);
    x[i] = affine(x[i] / std::sqrt(variance[c] + call.number("epsilon")), c);
  }
  x.store(results[0]);
  mean.store(results[1]);
  variance.store(results[2]);
  return {};
}

// ---- cards

constexpr AttributeSpec epsilon_attribute{.name = "epsilon", .kind = AttributeKind::number, .number = 1e-5};
constexpr AttributeSpec last_axes_attributes[] = {{.name = "axis", .integer = -1}, epsilon_attribute};
constexpr AttributeSpec group_attributes[] = {{.name = "groups", .required = true}, epsilon_attribute};
constexpr AttributeSpec batch_attributes[] = {epsilon_attribute};
constexpr Input inputs_with_affine[] = {
    {"x"}, {"weight", "T", InputKind::optional}, {"bias", "T", InputKind::optional}};
constexpr Input inputs_with_weight[] = {{"x"}, {"weight", "T", InputKind::optional}};
constexpr Input batch_norm_inputs[] = {{"x"}, {"weight"}, {"bias"}, {"mean"}, {"variance"}};
constexpr Input training_inputs[] = {{"x"}, {"weight"}, {"bias"}};
constexpr std::string_view training_results[] = {"y", "mean", "variance"};

constexpr Card norm_family[] = {
    {.name = "batch_norm",
     .summary = "(x - mean) / sqrt(variance + epsilon) * weight + bias, each one number per channel (axis 1)",
     .inputs = batch_norm_inputs,
     .attributes = batch_attributes,
     .traits = {.composite = true},
     .onnx = {"BatchNormalization"},
     .spellings = "BatchNorm1d BatchNorm2d BatchNorm3d",
     .oracle = "torch:nn.functional.batch_norm",
     .infer = infer_batch_norm,
     .reference = run_batch_norm,
     .gradient = gradient_by_parts,
     .decompose = decompose_batch_norm},
    {.name = "batch_norm_training",
     .summary = "batch_norm by the mean and the variance (of the population) of the batch itself, which are "
                "results too",
     .inputs = training_inputs,
     .attributes = batch_attributes,
     .results = training_results,
     .traits = {.composite = true},
     .oracle = "torch:nn.functional.batch_norm",
     .infer = infer_batch_norm_training,
     .reference = run_batch_norm_training,
     .gradient = gradient_by_parts,
     .decompose = decompose_batch_norm_training},
    {.name = "group_norm",
     .summary = "mean 0 and variance 1 over each of `groups` groups of channels (axis 1), then times weight "
                "plus bias, one number per channel",
     .inputs = inputs_with_affine,
     .attributes = group_attributes,
     .traits = {.composite = true},
     .onnx = {"GroupNormalization"},
     .spellings = "GroupNorm",
     .oracle = "torch:nn.functional.group_norm",
     .infer = infer_group_norm,
     .reference = run_group_norm,
     .gradient = gradient_by_parts,
     .decompose = decompose_group_norm},
    {.name = "layer_norm",
     .summary = "mean 0 and variance 1 over the axes from `axis` on, then times weight plus bias, which have "
                "the shape of those axes",
     .inputs = inputs_with_affine,
     .attributes = last_axes_attributes,
     .traits = {.composite = true},
     .onnx = {"LayerNormalization"},
     .spellings = "LayerNorm",
     .oracle = "torch:nn.functional.layer_norm",
     .infer = infer_last_axes,
     .reference = run_last_axes<true>,
     .gradient = gradient_by_parts,
     .decompose = decompose_layer_norm},
    {.name = "rms_norm",
     .summary =
         "x / sqrt(mean of squares over the axes from `axis` on + epsilon), times weight, which has the "
         "shape of those axes",
     .inputs = inputs_with_weight,
     .attributes = last_axes_attributes,
     .traits = {.composite = true},
     .onnx = {"RMSNormalization"},
     .spellings = "RMSNorm",
     .oracle = "torch:x * rsqrt(mean(x * x) + epsilon)",
     .infer = infer_last_axes,
     .reference = run_last_axes<false>,
     .gradient = gradient_by_parts,
     .decompose = decompose_rms_norm},
};

}  // namespace

std::span<const Card> tessera::op::norm_cards() { return norm_family; }
