// Resize, Upsample, GridSample: elements between the elements of a tensor.
#include <algorithm>
#include <array>
#include <cmath>

#include "tessera/onnx/mapping.h"
#include "tessera/onnx/value_target.h"

using namespace tessera;
using namespace tessera::onnx;

namespace {

// ---- one axis of a resize

enum class Method : std::uint8_t { nearest, linear, cubic };

struct ResizeAxis {
  std::int64_t size = 0, result = 0;
  double scale = 1, roi_start = 0, roi_end = 1;
};

struct ResizeOptions {
  Method method = Method::nearest;
  std::string coordinates, nearest;
  double cubic_a = -0.75, extrapolation = 0;
  bool excludes_outside = false;
};

/// The place in the input that element `at` of the result is about.
double place_of(const ResizeOptions& options, const ResizeAxis& axis, std::int64_t at) {
  const auto x = static_cast<double>(at), size = static_cast<double>(axis.size);
  const double length = axis.scale * size;  // not rounded, as the format's own reference has it
  const std::string& mode = options.coordinates;
  if (mode == "asymmetric") return x / axis.scale;
  if (mode == "align_corners") return length == 1 ? 0 : x * (size - 1) / (length - 1);
  if (mode == "pytorch_half_pixel") return length > 1 ? (x + 0.5) / axis.scale - 0.5 : 0;
  if (mode == "tf_half_pixel_for_nn") return (x + 0.5) / axis.scale;
  if (mode == "tf_crop_and_resize") {
    const double span = axis.roi_end - axis.roi_start;
    return length > 1 ? axis.roi_start * (size - 1) + x * span * (size - 1) / (length - 1)
                      : 0.5 * (axis.roi_start + axis.roi_end) * (size - 1);
  }
  return (x + 0.5) / axis.scale - 0.5;
}

std::int64_t nearest_of(const std::string& mode, double x) {
  if (mode == "floor") return static_cast<std::int64_t>(std::floor(x));
  if (mode == "ceil") return static_cast<std::int64_t>(std::ceil(x));
  if (mode == "round_prefer_ceil") return static_cast<std::int64_t>(std::floor(x + 0.5));
  return static_cast<std::int64_t>(std::ceil(x - 0.5));
}

/// The four weights of cubic convolution at a fraction t behind the second tap.
std::array<double, 4> cubic_weights(double t, double a) {
  const auto near = [&](double d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
  const auto far = [&](double d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
  return {far(t + 1), near(t), near(1 - t), far(2 - t)};
}

struct Tap {
  std::int64_t at;
  double weight;
};

std::vector<Tap> taps_of(const ResizeOptions& options, const ResizeAxis& axis, double x) {
  const double low = std::floor(x), t = x - low;
  const auto first = static_cast<std::int64_t>(low);
  if (options.method == Method::nearest) return {{nearest_of(options.nearest, x), 1}};
  if (options.method == Method::linear) return {{first, 1 - t}, {first + 1, t}};
  const auto weights = cubic_weights(t, options.cubic_a);
  std::vector<Tap> out;
  double total = 0;
  for (std::int64_t k = 0; k < 4; ++k) {
    const std::int64_t at = first - 1 + k;
    const bool is_left_out = options.excludes_outside && (at < 0 || at >= axis.size);
    out.push_back({at, is_left_out ? 0 : weights[static_cast<std::size_t>(k)]});
    total += out.back().weight;
  }
  if (options.excludes_outside && total != 0)
    for (Tap& tap : out) tap.weight /= total;
  return out;
}

/// What each element of the result takes of each element of the input, [size, result]; taps outside take the
/// edge.
HostTensor weights_of(const ResizeOptions& options, const ResizeAxis& axis, Dtype dtype,
                      std::vector<double>& outside) {
  std::vector<double> weights(static_cast<std::size_t>(axis.size * axis.result), 0);
  for (std::int64_t i = 0; i < axis.result; ++i) {
    const double x = place_of(options, axis, i);
    outside.push_back(x < 0 || x > static_cast<double>(axis.size - 1) ? 1 : 0);
    for (const Tap& tap : taps_of(options, axis, x)) {
      const std::int64_t at = std::clamp<std::int64_t>(tap.at, 0, axis.size - 1);
      weights[static_cast<std::size_t>(at * axis.result + i)] += tap.weight;
    }
  }
  return tensor_of(dtype, {axis.size, axis.result}, std::span<const double>(weights));
}

/// x times a matrix along one axis.
Value along(Value x, std::int64_t axis, Value matrix) {
  if (!x) return x;
  std::vector<std::int64_t> swap = axes_from(0, x.rank());
  std::swap(swap[static_cast<std::size_t>(axis)], swap.back());
  return transpose(matmul(transpose(x, swap), matrix), swap);
}

Value resize_axis(NodeCall& node, Value x, std::int64_t axis, const ResizeAxis& of,
                  const ResizeOptions& options) {
  if (options.method == Method::nearest && options.coordinates != "tf_crop_and_resize") {
    std::vector<std::int64_t> at;
    for (std::int64_t i = 0; i < of.result; ++i)
      at.push_back(
          std::clamp<std::int64_t>(nearest_of(options.nearest, place_of(options, of, i)), 0, of.size - 1));
    return node.b.call("gather", {x, node.vector_of(at)}, {{"axis", axis}});
  }
  std::vector<double> outside;
  const Value out = along(x, axis, node.target.tensor(weights_of(options, of, x.dtype(), outside)));
  if (options.coordinates != "tf_crop_and_resize") return out;
  Shape shape(x.rank() - static_cast<std::size_t>(axis), Dim(1));
  shape[0] = of.result;
  const Value is_outside = reshape(
      node.target.tensor(tensor_of(Dtype::boolean, {of.result}, std::span<const double>(outside))), shape);
  return where(is_outside, node.b.constant(options.extrapolation, x.dtype()), out);
}

Result<Items> resized(NodeCall& node, std::span<const ResizeAxis> axes, const ResizeOptions& options) {
  Value x = node.in(0);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const bool is_crop =
        options.coordinates == "tf_crop_and_resize" && (axes[i].roi_start != 0 || axes[i].roi_end != 1);
    if (axes[i].result == axes[i].size && axes[i].scale == 1 && !is_crop) continue;
    TESSERA_TRY(node.status());
    if (axes[i].size == 0) return node.error("axis ", i, " has no elements");
    const double area = static_cast<double>(axes[i].size) * static_cast<double>(axes[i].result);
    if (axes[i].result < 0 || area > static_cast<double>(node.bodies.limits().elements / 4))
      return Error(ErrorCode::limit,
                   cat("axis ", i, " of size ", axes[i].size, " would have size ", axes[i].result));
    x = resize_axis(node, x, static_cast<std::int64_t>(i), axes[i], options);
  }
  return Items{x};
}

// ---- what a node asks for

Result<std::vector<ResizeAxis>> axes_by_scales(NodeCall& node, std::span<const double> scales) {
  const auto sizes = TESSERA_TRY(node.numbers_of_shape(node.in(0)));
  if (scales.size() != sizes.size())
    return node.error("there are ", scales.size(), " scales, expected ", sizes.size());
  std::vector<ResizeAxis> out;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const double length = std::floor(scales[i] * static_cast<double>(sizes[i]));
    if (!(scales[i] > 0) || length > 1e9) return node.error("the scale of axis ", i, " is ", scales[i]);
    out.push_back({sizes[i], static_cast<std::int64_t>(length), scales[i], 0, 1});
  }
  return out;
}

Result<std::vector<ResizeAxis>> axes_by_sizes(NodeCall& node, std::span<const std::int64_t> wanted) {
  const auto sizes = TESSERA_TRY(node.numbers_of_shape(node.in(0)));
  if (wanted.size() != sizes.size())
    return node.error("there are ", wanted.size(), " sizes, expected ", sizes.size());
  std::vector<ResizeAxis> out;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (wanted[i] < 0) return node.error("the size of axis ", i, " is ", wanted[i]);
    const double scale = sizes[i] == 0 ? 1 : static_cast<double>(wanted[i]) / static_cast<double>(sizes[i]);
    out.push_back({sizes[i], wanted[i], scale, 0, 1});
  }
  return out;
}

Result<Method> method_of(NodeCall& node) {
  const std::string mode = node.text("mode", "nearest");
  if (mode == "nearest") return Method::nearest;
  if (mode == "linear" || mode == "bilinear" || mode == "trilinear") return Method::linear;
  if (mode == "cubic" || mode == "bicubic") return Method::cubic;
  return node.error("attribute 'mode' is ", shown(mode));
}

Result<Items> map_upsample(NodeCall& node) {
  auto scales = node.numbers("scales");
  if (node.opset >= 9) scales = numbers_of(TESSERA_TRY(node.elements(1)));
  const ResizeOptions options{TESSERA_TRY(method_of(node)), "asymmetric", "floor"};
  return resized(node, TESSERA_TRY(axes_by_scales(node, scales)), options);
}

Result<void> set_roi(NodeCall& node, std::vector<ResizeAxis>& axes) {
  const auto roi = numbers_of(TESSERA_TRY(node.elements(1)));
  if (roi.size() != 2 * axes.size())
    return node.error("input 1 has ", roi.size(), " entries, expected ", 2 * axes.size());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    axes[i].roi_start = roi[i];
    axes[i].roi_end = roi[axes.size() + i];
  }
  return {};
}

Result<Items> map_resize(NodeCall& node) {
  for (const std::string_view name : {"antialias", "axes", "keep_aspect_ratio_policy"})
    if (node.attribute(name) != nullptr) return node.unsupported("attribute '", name, "' is given");
  const ResizeOptions options{TESSERA_TRY(method_of(node)),
                              node.text("coordinate_transformation_mode", "half_pixel"),
                              node.text("nearest_mode", "round_prefer_floor"),
                              node.number("cubic_coeff_a", -0.75),
                              node.number("extrapolation_value", 0),
                              node.flag("exclude_outside", false)};
  std::vector<double> scales;
  if (node.has(2)) scales = numbers_of(TESSERA_TRY(node.elements(2)));
  auto axes = scales.empty() ? TESSERA_TRY(axes_by_sizes(node, TESSERA_TRY(node.integers_in(3))))
                             : TESSERA_TRY(axes_by_scales(node, scales));
  if (options.coordinates == "tf_crop_and_resize") TESSERA_TRY(set_roi(node, axes));
  return resized(node, axes, options);
}

// ---- grid sample

struct Grid {
  NodeCall& node;
  Value x;       ///< [N, C, H * W]
  Value gx, gy;  ///< places in elements, [N, P]
  std::int64_t height = 0, width = 0;
  std::string padding;
  bool aligns = false;

  [[nodiscard]] Value number(double value) const { return node.b.constant(value, gx.dtype()); }
  [[nodiscard]] Value call(std::string_view op, Value a, Value b) const { return node.b.call(op, {a, b}); }

  /// Whole places mirrored into [0, size).
  [[nodiscard]] Value mirrored(Value at, std::int64_t size) const {
    const auto n = static_cast<double>(size);
    if (aligns && size == 1) return at * 0.0;
    const double period = aligns ? 2 * (n - 1) : 2 * n, last = aligns ? 2 * (n - 1) : 2 * n - 1;
    const Value inside = call("mod", at, number(period));
    return where(call("gt", inside, number(n - 1)), last - inside, inside);
  }

  [[nodiscard]] Value inside(Value at, std::int64_t size) const {
    return node.b.call("logical_and",
                       {call("ge", at, number(0)), call("le", at, number(static_cast<double>(size - 1)))});
  }

  [[nodiscard]] Value clamped(Value at, std::int64_t size) const {
    if (padding == "reflection") at = mirrored(at, size);
    return node.b.call("clip", {at, number(0), number(static_cast<double>(size - 1))});
  }

  /// The elements at whole places, [N, C, P]; zeros outside if the padding says so.
  [[nodiscard]] Value elements(Value px, Value py) const {
    const Value flat = clamped(py, height) * static_cast<double>(width) + clamped(px, width);
    const Shape rows{gx.shape()[0], Dim(1), gx.shape()[1]}, all{x.shape()[0], x.shape()[1], gx.shape()[1]};
    const Value at = broadcast_to(reshape(cast(flat, Dtype::i64), rows), all);
    const Value found = node.b.call("gather_elements", {x, at}, {{"axis", 2}});
    if (padding != "zeros") return found;
    const Value is_inside = node.b.call("logical_and", {inside(px, width), inside(py, height)});
    return where(reshape(is_inside, rows), found, node.b.constant(0, x.dtype()));
  }

  [[nodiscard]] Value weighted(Value px, Value py, Value weight) const {
    const Shape rows{gx.shape()[0], Dim(1), gx.shape()[1]};
    return elements(px, py) * cast(reshape(weight, rows), x.dtype());
  }
};

Value bilinear(const Grid& g) {
  const Value x0 = unary("floor", g.gx), y0 = unary("floor", g.gy), tx = g.gx - x0, ty = g.gy - y0;
  return g.weighted(x0, y0, (1.0 - tx) * (1.0 - ty)) + g.weighted(x0 + 1.0, y0, tx * (1.0 - ty)) +
         g.weighted(x0, y0 + 1.0, (1.0 - tx) * ty) + g.weighted(x0 + 1.0, y0 + 1.0, tx * ty);
}

/// The weights of cubic convolution, as formulas.
std::array<Value, 4> cubic_weights(Value t) {
  constexpr double a = -0.75;
  const auto near = [&](Value d) { return ((d * (a + 2)) - (a + 3)) * d * d + 1.0; };
  const auto far = [&](Value d) { return (((d * a) - 5 * a) * d + 8 * a) * d - 4 * a; };
  return {far(t + 1.0), near(t), near(1.0 - t), far(2.0 - t)};
}

Value bicubic(const Grid& g) {
  const Value x0 = unary("floor", g.gx), y0 = unary("floor", g.gy);
  const auto wx = cubic_weights(g.gx - x0), wy = cubic_weights(g.gy - y0);
  Value out;
  for (std::size_t j = 0; j < 4; ++j)
    for (std::size_t i = 0; i < 4; ++i) {
      const Value part =
          g.weighted(x0 + (static_cast<double>(i) - 1), y0 + (static_cast<double>(j) - 1), wx[i] * wy[j]);
      out = out ? out + part : part;
    }
  return out;
}

/// From [-1, 1] to elements.
Value denormalised(Value g, std::int64_t size, bool aligns) {
  const auto n = static_cast<double>(size);
  return aligns ? (g + 1.0) * ((n - 1) / 2) : ((g + 1.0) * n - 1.0) / 2.0;
}

Result<Items> map_grid_sample(NodeCall& node) {
  const Value x = node.in(0), grid = node.in(1);
  TESSERA_TRY(node.status());
  if (x.rank() != 4 || grid.rank() != 4)
    return node.unsupported("inputs are ", x.type(), " and ", grid.type(), ", expected rank 4");
  const Shape &from = x.shape(), &to = grid.shape();
  if (!from[2].is_constant() || !from[3].is_constant())
    return node.unsupported("the sizes of ", x.type(), " must be numbers");
  const bool aligns = node.flag("align_corners", false);
  const Shape places{to[0], to[1] * to[2]};
  const auto coordinate = [&](std::int64_t k, std::int64_t size) {
    return denormalised(reshape(slice(grid, 3, k, k + 1), places), size, aligns);
  };
  const std::int64_t height = from[2].value(), width = from[3].value();
  const Grid g{node,
               reshape(x, Shape{from[0], from[1], from[2] * from[3]}),
               coordinate(0, width),
               coordinate(1, height),
               height,
               width,
               node.text("padding_mode", "zeros"),
               aligns};
  TESSERA_TRY(node.status());
  const std::string mode = node.text("mode", "bilinear");
  Value out;
  if (mode == "nearest")
    out = g.elements(unary("round", g.gx), unary("round", g.gy));
  else if (mode == "bilinear" || mode == "linear")
    out = bilinear(g);
  else if (mode == "bicubic" || mode == "cubic")
    out = bicubic(g);
  else
    return node.error("attribute 'mode' is ", shown(mode));
  return Items{reshape(out, Shape{from[0], from[1], to[1], to[2]})};
}

Result<Items> map_old_resize(NodeCall& node) {
  const ResizeOptions options{TESSERA_TRY(method_of(node)), "asymmetric", "floor"};
  return resized(node, TESSERA_TRY(axes_by_scales(node, numbers_of(TESSERA_TRY(node.elements(1))))), options);
}

constexpr Mapping table[] = {
    {"GridSample", map_grid_sample},
    {"Resize", map_old_resize, 10},
    {"Resize", map_resize, 11},
    {"Upsample", map_upsample},
};

}  // namespace

std::span<const Mapping> tessera::onnx::resampling_mappings() { return table; }
