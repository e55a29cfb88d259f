// Convolutions. Three ops that are linear in each of their two operands and are each other's gradients, with
// one geometry: a window slides over a large side [N, groups * C, size…]; each of its positions is an element
// of a small side [N, groups * O, positions…]; the weights are [groups * O, C, kernel…].
//
//   conv                  large, weights -> small
//   conv_transpose        small, weights -> large
//   conv_weight_gradient  large, small   -> weights
//
// Each kernel is a matrix product over columns: the elements that the window sees, one column per position.
#include <algorithm>

#include "tessera/op/families/make.h"
#include "tessera/op/families/window.h"
#include "tessera/op/matrix_product.h"
#include "tessera/op/wide_buffer.h"
#include "tessera/op/work.h"

using namespace tessera;
using namespace tessera::op;

namespace {

// ---- shape rules

Result<Dim> groups_of(const CallInfo& call) {
  const std::int64_t groups = call.integer("groups");
  if (groups < 1) return call.error("'groups' is ", groups, ", expected at least 1");
  return Dim(groups);
}

Result<void> must_divide(const CallInfo& call, const Dim& groups, const Dim& channels,
                         std::string_view what) {
  const Dim rest = floor_mod(channels, groups);
  if (ir::provably_different(rest, Dim(0)))
    return call.error(what, " has ", channels, " channels, which ", groups, " groups do not divide");
  TESSERA_TRY(
      call.unify(rest, Dim(0), cat("rest of ", channels, " channels of ", what, " in ", groups, " groups")));
  return {};
}

Result<void> check_ranks(const CallInfo& call, std::size_t other) {
  TESSERA_TRY(check_spatial_rank(call, 0));
  if (call.input(0).rank() == call.input(other).rank()) return {};
  return call.error(call.input_name(0), " (", call.input(0), ") has rank ", call.input(0).rank(), ", ",
                    call.input_name(other), " (", call.input(other), ") has rank ", call.input(other).rank());
}

Result<void> check_bias(const CallInfo& call, const Dim& channels) {
  if (!call.has_input(2)) return {};
  const ValueType& bias = call.input(2);
  if (bias.rank() != 1)
    return call.error("'bias' (", bias, ") has rank ", bias.rank(), ", expected 1: a number per channel");
  TESSERA_TRY(call.unify(bias.shape[0], channels, "size of 'bias' and channels of the result"));
  return {};
}

ValueTypes type_of(Dtype dtype, const Dim& batch, const Dim& channels, std::span<const Dim> sizes) {
  Shape shape{batch, channels};
  for (const Dim& size : sizes) shape.push_back(size);
  return {{dtype, std::move(shape)}};
}

Result<ValueTypes> infer_conv(const CallInfo& call) {
  TESSERA_TRY(check_ranks(call, 1));
  const ValueType &x = call.input(0), &w = call.input(1);
  const Dim groups = TESSERA_TRY(groups_of(call));
  TESSERA_TRY(call.unify(x.shape[1], w.shape[1] * groups,
                         cat("channels of 'x' (", x, ") and of 'w' (", w, ") in ", groups, " groups")));
  TESSERA_TRY(must_divide(call, groups, w.shape[0], "the result"));
  TESSERA_TRY(check_bias(call, w.shape[0]));
  const Window window = TESSERA_TRY(window_of(call, spatial(w.shape)));
  return type_of(x.dtype, x.shape[0], w.shape[0], TESSERA_TRY(window_positions(call, window, x, "'x'")));
}

/// The large side that an axis of the small side comes from. Sizes that differ by less than a stride give the
/// same positions: `output_padding` or `output_size` picks one.
Result<Shape> large_sizes(const CallInfo& call, const Window& window) {
  const auto& padding = call.integers("output_padding");
  const Shape& wanted = call.shape("output_size");
  if (!padding.empty() && !wanted.empty()) return call.error("has both 'output_padding' and 'output_size'");
  for (const std::size_t count : {padding.size(), wanted.size()})
    if (count != 0 && count != window.size())
      return call.error(padding.empty() ? "'output_size'" : "'output_padding'", " has ", count,
                        " numbers, expected ", window.size());
  Shape out;
  for (std::size_t i = 0; i < window.size(); ++i) {
    const WindowAxis& axis = window[i];
    const Dim positions = call.input(0).shape[2 + i];
    if (positions == Dim(0))
      return call.error("axis ", 2 + i, " of 'x' (", call.input(0), ") has no elements");
    const Dim least =
        (positions - Dim(1)) * Dim(axis.stride) + axis.span() - Dim(axis.pad_begin) - Dim(axis.pad_end);
    const Dim more = !wanted.empty() ? wanted[i] - least : padding.empty() ? Dim(0) : Dim(padding[i]);
    if (more.is_constant() && (more.value() < 0 || more.value() >= axis.stride))
      return call.error("axis ", 2 + i, " of the result can have size ", least, " to ",
                        least + Dim(axis.stride - 1), ", not ", least + more);
    out.push_back(wanted.empty() ? least + more : wanted[i]);
    if (out.back().is_constant() && out.back().value() < 1)
      return call.error("axis ", 2 + i, " of the result would have size ", out.back());
  }
  return out;
}

Result<ValueTypes> infer_conv_transpose(const CallInfo& call) {
  TESSERA_TRY(check_ranks(call, 1));
  const ValueType &x = call.input(0), &w = call.input(1);
  const Dim groups = TESSERA_TRY(groups_of(call));
  TESSERA_TRY(call.unify(x.shape[1], w.shape[0], cat("channels of 'x' (", x, ") and of 'w' (", w, ")")));
  TESSERA_TRY(must_divide(call, groups, w.shape[0], "'x'"));
  TESSERA_TRY(check_bias(call, w.shape[1] * groups));
  const Window window = TESSERA_TRY(window_of(call, spatial(w.shape)));
  return type_of(x.dtype, x.shape[0], w.shape[1] * groups, TESSERA_TRY(large_sizes(call, window)));
}

Result<ValueTypes> infer_weight_gradient(const CallInfo& call) {
  TESSERA_TRY(check_ranks(call, 1));
  const ValueType &x = call.input(0), &dy = call.input(1);
  const Dim groups = TESSERA_TRY(groups_of(call));
  TESSERA_TRY(call.unify(x.shape[0], dy.shape[0], cat("batch of 'x' (", x, ") and of 'dy' (", dy, ")")));
  TESSERA_TRY(must_divide(call, groups, x.shape[1], "'x'"));
  TESSERA_TRY(must_divide(call, groups, dy.shape[1], "'dy'"));
  const Shape& kernel = call.shape("kernel");
  if (kernel.size() + 2 != x.rank())
    return call.error("'kernel' ", kernel, " has ", kernel.size(), " sizes, 'x' (", x, ") has ", x.rank() - 2,
                      " spatial axes");
  const Window window = TESSERA_TRY(window_of(call, kernel));
  const Shape positions = TESSERA_TRY(window_positions(call, window, x, "'x'"));
  for (std::size_t i = 0; i < positions.size(); ++i)
    TESSERA_TRY(call.unify(
        dy.shape[2 + i], positions[i],
        cat("axis ", 2 + i, " of 'dy' (", dy, ") and the positions of the window on 'x' (", x, ")")));
  return type_of(x.dtype, dy.shape[1], floor_div(x.shape[1], groups), kernel);
}

// ---- kernels

/// The geometry in numbers, and the columns of one part of the positions at a time.
template <class W>
class Columns {
 public:
  static Result<Columns> of(const CallInfo& call, const Extents& large, const Extents& small,
                            std::span<const Dim> kernel) {
    Columns out;
    // Nothing to add up; and only then can sizes be so large that their product does not fit.
    if (element_count(large) == 0 || element_count(small) == 0) return out;
    out.sliding_ = Sliding::of(TESSERA_TRY(window_of(call, kernel)), large, small);
    out.batch = large[0];
    out.groups = call.integer("groups");
    out.large_channels = large[1] / out.groups;
    out.small_channels = small[1] / out.groups;
    out.depth = out.large_channels * out.sliding_.taps;
    out.positions = out.sliding_.positions;
    out.part = std::clamp<std::int64_t>(elements_at_once / std::max<std::int64_t>(out.depth, 1), 16,
                                        std::max<std::int64_t>(out.positions, 16));
    out.columns = TESSERA_TRY(WideBuffer<W>::zeros(out.depth * out.part));
    return out;
  }

  std::int64_t batch = 0, groups = 1, positions = 0;
  std::int64_t large_channels = 0, small_channels = 0;  ///< of one group
  std::int64_t depth = 0;                               ///< rows of the columns: channels times taps
  std::int64_t part = 0;                                ///< positions at once
  WideBuffer<W> columns;                                ///< [depth, width of this part]

  /// Calls `f(image of the large side, image of the small side at its first position, weights, width)` for
  /// each image, group and part; the three are offsets.
  template <class F>
  void for_each_part(F&& f) {
    for (std::int64_t i = 0; i < batch * groups; ++i)
      for (begin_ = 0; begin_ < positions; begin_ += part)
        f(i * large_channels * sliding_.size, i * small_channels * positions + begin_,
          i % groups * small_channels * depth, std::min(part, positions - begin_));
  }

  /// Copies what the window sees into the columns; padding is 0.
  void gather(const W* image, std::int64_t width) {
    std::fill_n(columns.data(), depth * width, W(0));
    for_each_run(width, [&](W* column, std::int64_t at, std::int64_t stride, std::int64_t count) {
      for (std::int64_t i = 0; i < count; ++i) column[i] = image[at + i * stride];
    });
  }
  /// Adds the columns to what the window sees.
  void scatter(W* image, std::int64_t width) {
    for_each_run(width, [&](const W* column, std::int64_t at, std::int64_t stride, std::int64_t count) {
      for (std::int64_t i = 0; i < count; ++i) image[at + i * stride] = image[at + i * stride] + column[i];
    });
  }

 private:
  static constexpr std::int64_t elements_at_once = 1 << 18;

  template <class F>
  void for_each_run(std::int64_t width, F&& f) {
    for (std::int64_t row = 0; row < depth; ++row)
      sliding_.for_each_run(row % sliding_.taps, begin_, begin_ + width,
                            [&](std::int64_t at, std::int64_t from, std::int64_t stride, std::int64_t count) {
                              f(columns.data() + row * width + at, row / sliding_.taps * sliding_.size + from,
                                stride, count);
                            });
  }

  Sliding sliding_;
  std::int64_t begin_ = 0;
};

/// Zeros, or the bias of each channel.
template <class W>
Result<WideBuffer<W>> result_with_bias(std::span<const Array> inputs, const Array& result) {
  auto y = TESSERA_TRY(WideBuffer<W>::zeros(result.size()));
  if (inputs.size() < 3 || result.size() == 0) return y;
  const auto bias = TESSERA_TRY(WideBuffer<W>::load(inputs[2]));
  const std::int64_t channels = result.shape()[1], image = result.size() / (result.shape()[0] * channels);
  for (std::int64_t i = 0; i < result.size() / image; ++i)
    std::fill_n(y.data() + i * image, image, bias[i % channels]);
  return y;
}

Result<void> run_conv(const CallInfo& call, std::span<const Array> inputs, std::span<const Array> results) {
  return visit_wide(inputs[0].dtype, [&]<class W>(W*) -> Result<void> {
    auto c = TESSERA_TRY(
        Columns<W>::of(call, inputs[0].shape(), results[0].shape(), spatial(call.input(1).shape)));
    const auto x = TESSERA_TRY(WideBuffer<W>::load(inputs[0])),
               w = TESSERA_TRY(WideBuffer<W>::load(inputs[1]));
    auto y = TESSERA_TRY(result_with_bias<W>(inputs, results[0]));
    c.for_each_part([&](std::int64_t large, std::int64_t small, std::int64_t weights, std::int64_t width) {
      c.gather(x.data() + large, width);
      add_product<W>({.rows = c.small_channels,
                      .columns = width,
                      .depth = c.depth,
                      .a = w.data() + weights,
                      .a_row = c.depth,
                      .b = c.columns.data(),
                      .b_depth = width,
                      .c = y.data() + small,
                      .c_row = c.positions});
    });
    y.store(results[0]);
    return {};
  });
}

Result<void> run_transpose(const CallInfo& call, std::span<const Array> inputs,
                           std::span<const Array> results) {
  return visit_wide(inputs[0].dtype, [&]<class W>(W*) -> Result<void> {
    auto c = TESSERA_TRY(
        Columns<W>::of(call, results[0].shape(), inputs[0].shape(), spatial(call.input(1).shape)));
    const auto x = TESSERA_TRY(WideBuffer<W>::load(inputs[0])),
               w = TESSERA_TRY(WideBuffer<W>::load(inputs[1]));
    auto y = TESSERA_TRY(result_with_bias<W>(inputs, results[0]));
    c.for_each_part([&](std::int64_t large, std::int64_t small, std::int64_t weights, std::int64_t width) {
      std::fill_n(c.columns.data(), c.depth * width, W(0));
      add_product<W>({.rows = c.depth,
                      .columns = width,
                      .depth = c.small_channels,
                      .a = w.data() + weights,
                      .a_row = 1,
                      .a_depth = c.depth,
                      .b = x.data() + small,
                      .b_depth = c.positions,
                      .c = c.columns.data(),
                      .c_row = width});
      c.scatter(y.data() + large, width);
    });
    y.store(results[0]);
    return {};
  });
}

Result<void> run_weight_gradient(const CallInfo& call, std::span<const Array> inputs,
                                 std::span<const Array> results) {
  return visit_wide(inputs[0].dtype, [&]<class W>(W*) -> Result<void> {
    auto c = TESSERA_TRY(Columns<W>::of(call, inputs[0].shape(), inputs[1].shape(), call.shape("kernel")));
    const auto x = TESSERA_TRY(WideBuffer<W>::load(inputs[0])),
               dy = TESSERA_TRY(WideBuffer<W>::load(inputs[1]));
    // Products need contiguous columns of their right side: dy is turned, and so is the result.
    auto turned = TESSERA_TRY(WideBuffer<W>::zeros(c.part * c.small_channels));
    auto sums = TESSERA_TRY(WideBuffer<W>::zeros(results[0].size()));
    c.for_each_part([&](std::int64_t large, std::int64_t small, std::int64_t weights, std::int64_t width) {
      c.gather(x.data() + large, width);
      copy_transposed(dy.data() + small, c.positions, c.small_channels, width, turned.data());
      add_product<W>({.rows = c.depth,
                      .columns = c.small_channels,
                      .depth = width,
                      .a = c.columns.data(),
                      .a_row = width,
                      .b = turned.data(),
                      .b_depth = c.small_channels,
                      .c = sums.data() + weights,
                      .c_row = c.small_channels});
    });
    auto dw = TESSERA_TRY(WideBuffer<W>::zeros(results[0].size()));
    const std::int64_t group = c.depth * c.small_channels;
    for (std::int64_t g = 0; g < c.groups; ++g)
      copy_transposed(sums.data() + g * group, c.small_channels, c.depth, c.small_channels,
                      dw.data() + g * group);
    dw.store(results[0]);
    return {};
  });
}

/// Each element of the small side takes the weights of one of its channels.
double work_of_window(const Shape& small, const Shape& weights) {
  return element_estimate(small) * element_estimate(Shape(weights.begin() + 1, weights.end()));
}
double work_of_conv(const CallInfo& call, const ValueTypes& results) {
  return work_of_window(results[0].shape, call.input(1).shape);
}
double work_of_transpose(const CallInfo& call, const ValueTypes&) {
  return work_of_window(call.input(0).shape, call.input(1).shape);
}
double work_of_weight_gradient(const CallInfo& call, const ValueTypes& results) {
  return work_of_window(call.input(1).shape, results[0].shape);
}

// ---- gradients

/// The attributes that the three ops share.
Attributes window_attributes_of(const CallInfo& call) {
  return {{"strides", call.integers("strides")},
          {"pads", call.integers("pads")},
          {"dilations", call.integers("dilations")},
          {"groups", call.integer("groups")}};
}

Value to_small(GradientCall& g, Value large, Value w) {
  return g.b.call("conv", {large, w}, window_attributes_of(g.info));
}
Value to_large(GradientCall& g, Value small, Value w, Value like) {
  Attributes attributes = window_attributes_of(g.info);
  attributes.set("output_size", Shape(spatial(like.shape())));
  return g.b.call("conv_transpose", {small, w}, std::move(attributes));
}
Value to_weights(GradientCall& g, Value large, Value small, Value like) {
  Attributes attributes = window_attributes_of(g.info);
  attributes.set("kernel", Shape(spatial(like.shape())));
  return g.b.call("conv_weight_gradient", {large, small}, std::move(attributes));
}

Values with_bias_gradient(const GradientCall& g, Values gradients) {
  if (g.input_count() < 3) return gradients;
  std::vector<std::int64_t> axes{0};
  for (std::size_t i = 2; i < g.x().rank(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  gradients.push_back(sum(g.dy(), axes, false));
  return gradients;
}

Values gradient_conv(GradientCall& g) {
  return with_bias_gradient(g, {to_large(g, g.dy(), g.x(1), g.x(0)), to_weights(g, g.x(0), g.dy(), g.x(1))});
}
Values gradient_conv_transpose(GradientCall& g) {
  return with_bias_gradient(g, {to_small(g, g.dy(), g.x(1)), to_weights(g, g.dy(), g.x(0), g.x(1))});
}
Values gradient_weight_gradient(GradientCall& g) {
  return {to_large(g, g.x(1), g.dy(), g.x(0)), to_small(g, g.x(0), g.dy())};
}

// ---- cards

constexpr Input conv_inputs[] = {{"x"}, {"w"}, {"bias", "T", InputKind::optional}};
constexpr Input weight_gradient_inputs[] = {{"x"}, {"dy"}};
constexpr AttributeSpec conv_attributes[] = {
    {"strides", AttributeKind::integers},
    {"pads", AttributeKind::integers},
    {"dilations", AttributeKind::integers},
    {.name = "groups", .integer = 1},
};
constexpr AttributeSpec conv_transpose_attributes[] = {
    {"strides", AttributeKind::integers},        {"pads", AttributeKind::integers},
    {"dilations", AttributeKind::integers},      {.name = "groups", .integer = 1},
    {"output_padding", AttributeKind::integers}, {"output_size", AttributeKind::shape},
};
constexpr AttributeSpec weight_gradient_attributes[] = {
    {"kernel", AttributeKind::shape, true}, {"strides", AttributeKind::integers},
    {"pads", AttributeKind::integers},      {"dilations", AttributeKind::integers},
    {.name = "groups", .integer = 1},
};

constexpr Card conv_family[] = {
    {.name = "conv",
     .summary =
         "convolution over 1 to 3 spatial axes: x [N, C, …], w [O, C / groups, kernel…], a bias per channel",
     .inputs = conv_inputs,
     .attributes = conv_attributes,
     .T = number_dtypes,
     .traits = {.costly = true},
     .onnx = {"Conv"},
     .spellings = "Conv1d Conv2d Conv3d conv1d conv2d conv3d",
     .oracle = "torch:nn.functional.conv2d",
     .infer = infer_conv,
     .reference = run_conv,
     .gradient = gradient_conv,
     .work = work_of_conv},
    {.name = "conv_transpose",
     .summary = "transposed convolution: x [N, C, …], w [C, O / groups, kernel…]; output_size picks one of "
                "the sizes",
     .inputs = conv_inputs,
     .attributes = conv_transpose_attributes,
     .T = number_dtypes,
     .traits = {.costly = true},
     .onnx = {"ConvTranspose"},
     .oracle = "torch:nn.functional.conv_transpose2d",
     .infer = infer_conv_transpose,
     .reference = run_transpose,
     .gradient = gradient_conv_transpose,
     .work = work_of_transpose},
    {.name = "conv_weight_gradient",
     .summary = "gradient of conv for its weights, of sizes `kernel`, from x and the gradient of the result",
     .inputs = weight_gradient_inputs,
     .attributes = weight_gradient_attributes,
     .T = number_dtypes,
     .traits = {.costly = true},
     .oracle = "torch:nn.grad.conv2d_weight",
     .infer = infer_weight_gradient,
     .reference = run_weight_gradient,
     .gradient = gradient_weight_gradient,
     .work = work_of_weight_gradient},
};

}  // namespace

std::span<const Card> tessera::op::conv_cards() { return conv_family; }
