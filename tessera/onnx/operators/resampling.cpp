// Resize and Upsample: elements between the elements of a tensor, axis by axis.
#include <algorithm>
#include <array>
#include <cmath>

#include "tessera/onnx/mapping.h"
#include "tessera/onnx/value_target.h"

using namespace tessera;
using namespace tessera::onnx;

namespace {

enum class Method : std::uint8_t { nearest, linear, cubic };

struct ResizeOptions {
  Method method = Method::nearest;
  std::string coordinates, nearest;
  double cubic_a = -0.75, extrapolation = 0;
  bool excludes_outside = false, antialiases = false;

  [[nodiscard]] bool crops() const { return coordinates == "tf_crop_and_resize"; }
};

/// One axis: its size before and after, and how much larger it becomes where the file says it.
struct ResizeAxis {
  Dim size, result;
  std::optional<double> scale;
  double roi_start = 0, roi_end = 1;

  [[nodiscard]] bool is_known() const { return size.is_constant() && result.is_constant(); }
};

// ---- one axis in numbers

struct KnownAxis {
  std::int64_t size = 0, result = 0;
  double scale = 1, roi_start = 0, roi_end = 1;

  explicit KnownAxis(const ResizeAxis& axis)
      : size(axis.size.value()),
        result(axis.result.value()),
        scale(axis.scale.value_or(size == 0 ? 1 : static_cast<double>(result) / static_cast<double>(size))),
        roi_start(axis.roi_start),
        roi_end(axis.roi_end) {}
};

/// The place in the input that element `at` of the result is about.
double place_of(const ResizeOptions& options, const KnownAxis& axis, std::int64_t at) {
  const auto x = static_cast<double>(at), size = static_cast<double>(axis.size);
  const double length = axis.scale * size;  // not rounded, as the format's own reference has it
  const std::string& mode = options.coordinates;
  if (mode == "asymmetric") return x / axis.scale;
  if (mode == "align_corners") return length == 1 ? 0 : x * (size - 1) / (length - 1);
  if (mode == "pytorch_half_pixel") return length > 1 ? (x + 0.5) / axis.scale - 0.5 : 0;
  if (mode == "tf_half_pixel_for_nn") return (x + 0.5) / axis.scale;
  if (mode == "half_pixel_symmetric") {
    const double offset = size / 2 * (1 - static_cast<double>(axis.result) / length);
    return offset + (x + 0.5) / axis.scale - 0.5;
  }
  if (options.crops()) {
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

/// The weight of an element at a distance: a triangle, or a cubic convolution.
double weight_at(const ResizeOptions& options, double distance) {
  const double d = std::abs(distance), a = options.cubic_a;
  if (options.method == Method::linear) return std::max(0.0, 1 - d);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

struct Tap {
  std::int64_t at;
  double weight;
};

/// Which elements go into the one at place `x`. Against aliasing the weights are as wide as the axis shrinks.
std::vector<Tap> taps_of(const ResizeOptions& options, const KnownAxis& axis, double x) {
  if (options.method == Method::nearest) return {{nearest_of(options.nearest, x), 1}};
  const double shrink = options.antialiases ? std::min(axis.scale, 1.0) : 1.0;
  const double reach = options.method == Method::linear ? 1 : 2, low = std::floor(x);
  const auto begin = static_cast<std::int64_t>(std::floor(-reach / shrink)) + 1,
             first = static_cast<std::int64_t>(low);
  std::vector<Tap> out;
  double total = 0;
  for (std::int64_t k = begin; k <= 1 - begin; ++k) {
    const std::int64_t at = first + k;
    const bool is_left_out = options.excludes_outside && (at < 0 || at >= axis.size);
    out.push_back({at, is_left_out ? 0 : weight_at(options, (static_cast<double>(at) - x) * shrink)});
    total += out.back().weight;
  }
  if ((options.excludes_outside || options.antialiases) && total != 0)
    for (Tap& tap : out) tap.weight /= total;
  return out;
}

/// Taps of all elements of the result, those outside at the edge; and which elements are about a place
/// outside.
struct AxisTaps {
  std::vector<std::vector<Tap>> taps;
  std::vector<double> outside;

  AxisTaps(const ResizeOptions& options, const KnownAxis& axis) {
    for (std::int64_t i = 0; i < axis.result; ++i) {
      const double x = place_of(options, axis, i);
      outside.push_back(x < 0 || x > static_cast<double>(axis.size - 1) ? 1 : 0);
      taps.push_back(taps_of(options, axis, x));
      for (Tap& tap : taps.back()) tap.at = std::clamp<std::int64_t>(tap.at, 0, axis.size - 1);
    }
  }
};

/// A vector as it broadcasts along one axis.
Value along_axis(Value vector, std::size_t rank, std::size_t axis) {
  if (!vector) return vector;
  Shape shape(rank - axis, Dim(1));
  shape[0] = vector.shape()[0];
  return reshape(vector, shape);
}

/// Few taps: the elements of each, weighted.
Value sum_of_taps(NodeCall& node, Value x, std::size_t axis, const AxisTaps& of, std::int64_t result) {
  Value out;
  for (std::size_t k = 0; k < of.taps[0].size(); ++k) {
    std::vector<std::int64_t> at;
    std::vector<double> weights;
    for (const auto& taps : of.taps) at.push_back(taps[k].at), weights.push_back(taps[k].weight);
    const Value found =
        node.b.call("gather", {x, node.vector_of(at)}, {{"axis", static_cast<std::int64_t>(axis)}});
    if (of.taps[0].size() == 1) return found;
    const Value weight = node.target.tensor(tensor_of(x.dtype(), {result}, std::span<const double>(weights)));
    const Value part = found * along_axis(weight, x.rank(), axis);
    out = out ? out + part : part;
  }
  return out;
}

/// Many taps: a product with a matrix, [size, result].
Result<Value> product_with_taps(NodeCall& node, Value x, std::size_t axis, const AxisTaps& of,
                                const KnownAxis& known) {
  const double area = static_cast<double>(known.size) * static_cast<double>(known.result);
  if (area > static_cast<double>(node.bodies.limits().elements / 4))
    return Error(ErrorCode::limit,
                 cat("axis ", axis, " of size ", known.size, " would have size ", known.result));
  std::vector<double> weights(static_cast<std::size_t>(known.size * known.result), 0);
  for (std::size_t i = 0; i < of.taps.size(); ++i)
    for (const Tap& tap : of.taps[i])
      weights[static_cast<std::size_t>(tap.at) * of.taps.size() + i] += tap.weight;
  const Value matrix =
      node.target.tensor(tensor_of(x.dtype(), {known.size, known.result}, std::span<const double>(weights)));
  std::vector<std::int64_t> swap = axes_from(0, x.rank());
  std::swap(swap[axis], swap.back());
  return transpose(matmul(transpose(x, swap), matrix), swap);
}

Result<Value> resize_known(NodeCall& node, Value x, std::size_t axis, const KnownAxis& known,
                           const ResizeOptions& options) {
  constexpr std::size_t few = 4;
  if (known.size == 0 || known.result == 0)
    return node.error("axis ", axis, " has or would have no elements");
  // Taps are worked out here, one by one: fewer than elements may be.
  const double reach = options.antialiases ? std::max(1.0, 1 / known.scale) : 1;
  if (static_cast<double>(known.result) * reach > static_cast<double>(node.bodies.limits().elements / 64))
    return Error(ErrorCode::limit,
                 cat("axis ", axis, " of size ", known.size, " would have size ", known.result));
  const AxisTaps taps(options, known);
  Value out = taps.taps[0].size() <= few ? sum_of_taps(node, x, axis, taps, known.result)
                                         : TESSERA_TRY(product_with_taps(node, x, axis, taps, known));
  if (!options.crops()) return out;
  const Value outside =
      node.target.tensor(tensor_of(Dtype::boolean, {known.result}, std::span<const double>(taps.outside)));
  return where(along_axis(outside, x.rank(), axis), node.b.constant(options.extrapolation, x.dtype()), out);
}

// ---- one axis in symbols

/// The places of all elements of the result, in f64.
Result<Value> places_of(NodeCall& node, const ResizeAxis& axis, const ResizeOptions& options) {
  const auto number = [&](const Dim& size) { return cast(node.b.extent(size), Dtype::f64); };
  const Value x = cast(op::range(node.b, 0, axis.result), Dtype::f64);
  const Value scale =
      axis.scale ? node.b.constant(*axis.scale, Dtype::f64) : number(axis.result) / number(axis.size);
  const std::string& mode = options.coordinates;
  if (mode == "asymmetric") return x / scale;
  if (mode == "half_pixel") return (x + 0.5) / scale - 0.5;
  if (mode == "tf_half_pixel_for_nn") return (x + 0.5) / scale;
  const Value last = node.b.call("maximum", {number(axis.result) - 1.0, node.b.constant(1, Dtype::f64)});
  if (mode == "align_corners") return x * (number(axis.size) - 1.0) / last;
  return node.unsupported("the sizes ", axis.size, " and ", axis.result, " must be numbers for ",
                          shown(mode));
}

Value nearest_of(const std::string& mode, Value x) {
  if (mode == "floor" || mode == "ceil") return unary(mode, x);
  return mode == "round_prefer_ceil" ? unary("floor", x + 0.5) : unary("ceil", x - 0.5);
}

Result<Value> resize_symbolic(NodeCall& node, Value x, std::size_t axis, const ResizeAxis& of,
                              const ResizeOptions& options) {
  if (options.method == Method::cubic || options.antialiases)
    return node.unsupported("the sizes ", of.size, " and ", of.result, " must be numbers");
  const Value places = TESSERA_TRY(places_of(node, of, options));
  const Value last = cast(node.b.extent(of.size - Dim(1)), Dtype::f64);
  const auto elements = [&](Value at) {
    const Value inside = node.b.call("clip", {at, node.b.constant(0, Dtype::f64), last});
    return node.b.call("gather", {x, cast(inside, Dtype::i64)}, {{"axis", static_cast<std::int64_t>(axis)}});
  };
  if (options.method == Method::nearest) return elements(nearest_of(options.nearest, places));
  const Value low = unary("floor", places);
  const Value t = along_axis(cast(places - low, x.dtype()), x.rank(), axis);
  return elements(low) * (1.0 - t) + elements(low + 1.0) * t;
}

// ---- all axes

Result<Items> resized(NodeCall& node, std::span<const ResizeAxis> axes, const ResizeOptions& options) {
  Value x = node.in(0);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const bool crops = options.crops() && (axes[i].roi_start != 0 || axes[i].roi_end != 1);
    if (axes[i].result == axes[i].size && axes[i].scale.value_or(1) == 1 && !crops) continue;
    TESSERA_TRY(node.status());
    x = TESSERA_TRY(axes[i].is_known() ? resize_known(node, x, i, KnownAxis(axes[i]), options)
                                       : resize_symbolic(node, x, i, axes[i], options));
  }
  return Items{x};
}

/// Which axes the entries of `scales`, `sizes` and `roi` are about.
Result<std::vector<std::size_t>> chosen_axes(NodeCall& node) {
  const Value x = node.in(0);
  TESSERA_TRY(node.status());
  std::vector<std::size_t> out;
  if (node.attribute("axes") == nullptr)
    for (std::size_t i = 0; i < x.rank(); ++i) out.push_back(i);
  for (const std::int64_t axis : node.integers("axes"))
    out.push_back(static_cast<std::size_t>(TESSERA_TRY(node.axis(axis, x.rank()))));
  return out;
}

std::vector<ResizeAxis> unchanged(Value x) {
  std::vector<ResizeAxis> out;
  for (const Dim& size : x.shape()) out.push_back({size, size, {}});
  return out;
}

Result<Dim> scaled(NodeCall& node, const Dim& size, double scale) {
  if (size.is_constant())
    return Dim(static_cast<std::int64_t>(std::floor(scale * static_cast<double>(size.value()))));
  if (scale != std::floor(scale))
    return node.unsupported("the size ", size, " must be a number for the scale ", scale);
  return size * Dim(static_cast<std::int64_t>(scale));
}

Result<std::vector<ResizeAxis>> axes_by_scales(NodeCall& node, std::span<const double> scales) {
  const auto chosen = TESSERA_TRY(chosen_axes(node));
  std::vector<ResizeAxis> out = unchanged(node.in(0));
  if (scales.size() != chosen.size())
    return node.error("there are ", scales.size(), " scales, expected ", chosen.size());
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    ResizeAxis& axis = out[chosen[i]];
    if (!(scales[i] > 0) || scales[i] > 1e9)
      return node.error("the scale of axis ", chosen[i], " is ", scales[i]);
    axis.result = TESSERA_TRY(scaled(node, axis.size, scales[i]));
    axis.scale = scales[i];
  }
  return out;
}

/// One scale for all axes: the largest that exceeds no size, or the smallest that falls short of none.
Result<void> keep_aspect(NodeCall& node, std::span<const std::size_t> chosen, std::vector<ResizeAxis>& axes) {
  const std::string policy = node.text("keep_aspect_ratio_policy", "stretch");
  if (policy == "stretch") return {};
  if (policy != "not_larger" && policy != "not_smaller")
    return node.error("attribute 'keep_aspect_ratio_policy' is ", shown(policy));
  std::optional<double> scale;
  for (const std::size_t i : chosen) {
    if (!axes[i].is_known()) return node.unsupported("the sizes must be numbers to keep their ratio");
    const double own = KnownAxis(axes[i]).scale;
    scale = !scale ? own : policy == "not_larger" ? std::min(*scale, own) : std::max(*scale, own);
  }
  for (const std::size_t i : chosen) {
    axes[i].scale = scale;
    axes[i].result =
        static_cast<std::int64_t>(std::floor(*scale * static_cast<double>(axes[i].size.value()) + 0.5));
  }
  return {};
}

Result<std::vector<ResizeAxis>> axes_by_sizes(NodeCall& node, std::span<const Dim> wanted) {
  const auto chosen = TESSERA_TRY(chosen_axes(node));
  std::vector<ResizeAxis> out = unchanged(node.in(0));
  if (wanted.size() != chosen.size())
    return node.error("there are ", wanted.size(), " sizes, expected ", chosen.size());
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (wanted[i].is_constant() && wanted[i].value() < 0)
      return node.error("the size of axis ", chosen[i], " is ", wanted[i]);
    out[chosen[i]].result = wanted[i];
  }
  TESSERA_TRY(keep_aspect(node, chosen, out));
  return out;
}

// ---- the operators

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

Result<Items> map_old_resize(NodeCall& node) {
  const ResizeOptions options{TESSERA_TRY(method_of(node)), "asymmetric", "floor"};
  return resized(node, TESSERA_TRY(axes_by_scales(node, numbers_of(TESSERA_TRY(node.elements(1))))), options);
}

Result<void> set_roi(NodeCall& node, std::vector<ResizeAxis>& axes) {
  const auto roi = numbers_of(TESSERA_TRY(node.elements(1)));
  const auto chosen = TESSERA_TRY(chosen_axes(node));
  if (roi.size() != 2 * chosen.size())
    return node.error("input 1 has ", roi.size(), " entries, expected ", 2 * chosen.size());
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    axes[chosen[i]].roi_start = roi[i];
    axes[chosen[i]].roi_end = roi[chosen.size() + i];
  }
  return {};
}

Result<Items> map_resize(NodeCall& node) {
  const ResizeOptions options{TESSERA_TRY(method_of(node)),
                              node.text("coordinate_transformation_mode", "half_pixel"),
                              node.text("nearest_mode", "round_prefer_floor"),
                              node.number("cubic_coeff_a", -0.75),
                              node.number("extrapolation_value", 0),
                              node.flag("exclude_outside", false),
                              node.flag("antialias", false)};
  std::vector<double> scales;
  if (node.has(2)) scales = numbers_of(TESSERA_TRY(node.elements(2)));
  auto axes = scales.empty() ? TESSERA_TRY(axes_by_sizes(node, TESSERA_TRY(node.sizes_in(3))))
                             : TESSERA_TRY(axes_by_scales(node, scales));
  if (options.crops()) TESSERA_TRY(set_roi(node, axes));
  return resized(node, axes, options);
}

constexpr Mapping resampling_table[] = {
    {"Resize", map_old_resize, 10},
    {"Resize", map_resize, 11},
    {"Upsample", map_upsample},
};

}  // namespace

std::span<const Mapping> tessera::onnx::resampling_mappings() { return resampling_table; }
