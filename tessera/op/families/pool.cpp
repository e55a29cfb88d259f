// Pooling: one number for what a window sees, per channel.
#include <algorithm>
#include <limits>

#include "tessera/op/families/make.h"
#include "tessera/op/families/window.h"
#include "tessera/op/reference.h"
#include "tessera/op/wide_buffer.h"
#include "tessera/op/work.h"

using namespace tessera;
using namespace tessera::op;

namespace {

// ---- shape rules

WindowEnd end_of(const CallInfo& call) {
  return call.flag("ceil_mode") ? WindowEnd::partial : WindowEnd::inside;
}

/// The window of the attribute `kernel`. No window lies wholly in the padding.
Result<Window> pool_window(const CallInfo& call, std::span<const Dim> sizes) {
  const auto& kernel = call.integers("kernel");
  if (kernel.size() != sizes.size())
    return call.error("'kernel' [", join(kernel, ", "), "] has ", kernel.size(), " sizes, expected ",
                      sizes.size());
  Window window = TESSERA_TRY(window_of(call, ir::shape_of(kernel)));
  for (std::size_t i = 0; i < window.size(); ++i) {
    if (sizes[i] == Dim(0)) return call.error("axis ", 2 + i, " has no elements");
    const Dim span = window[i].span();
    const std::int64_t pad = std::max(window[i].pad_begin, window[i].pad_end);
    if (!span.is_constant() || pad > span.value() / 2)
      return call.error("'pads' has ", pad, " for axis ", 2 + i, ", at most half of the ", span,
                        " elements that the window spans is allowed");
    // Taps that lie further apart than the input is long could all miss it.
    if (pad > 0 && ir::provably_at_least(Dim(window[i].dilation - 1), sizes[i]))
      return call.error("'dilations' has ", window[i].dilation, " for axis ", 2 + i, ", which has size ",
                        sizes[i], ": a window could see nothing but padding");
  }
  return window;
}

Result<ValueType> pooled_type(const CallInfo& call) {
  TESSERA_TRY(check_spatial_rank(call, 0));
  const ValueType& x = call.input(0);
  const Window window = TESSERA_TRY(pool_window(call, spatial(x.shape)));
  Shape shape{x.shape[0], x.shape[1]};
  for (const Dim& size : TESSERA_TRY(window_positions(call, window, x, "'x'", end_of(call))))
    shape.push_back(size);
  return ValueType{x.dtype, std::move(shape)};
}

Result<ValueTypes> infer_max_pool(const CallInfo& call) {
  ValueType values = TESSERA_TRY(pooled_type(call));
  ValueType indices{Dtype::i64, values.shape};
  return ValueTypes{std::move(values), std::move(indices)};
}

Result<ValueTypes> infer_avg_pool(const CallInfo& call) { return ValueTypes{TESSERA_TRY(pooled_type(call))}; }

/// Undoes the shape rule of avg_pool: `size` says what the input had.
Result<ValueTypes> infer_avg_pool_gradient(const CallInfo& call) {
  TESSERA_TRY(check_spatial_rank(call, 0));
  const ValueType& dy = call.input(0);
  ValueType x{dy.dtype, {dy.shape[0], dy.shape[1]}};
  for (const Dim& size : call.shape("size")) x.shape.push_back(size);
  if (x.rank() != dy.rank())
    return call.error("'size' ", call.shape("size"), " has ", x.rank() - 2, " sizes, 'dy' (", dy, ") has ",
                      dy.rank() - 2, " spatial axes");
  const Window window = TESSERA_TRY(pool_window(call, spatial(x.shape)));
  const Shape positions = TESSERA_TRY(window_positions(call, window, x, "the input", end_of(call)));
  for (std::size_t i = 0; i < positions.size(); ++i)
    TESSERA_TRY(
        call.unify(dy.shape[2 + i], positions[i],
                   cat("axis ", 2 + i, " of 'dy' (", dy, ") and the positions of the window on ", x)));
  return ValueTypes{std::move(x)};
}

// ---- kernels

/// The sizes of a call in numbers; `large` has the sizes that the window slides over.
struct Pool {
  Sliding sliding;
  std::int64_t images = 0;

  static Result<Pool> of(const CallInfo& call, const Extents& large, const Extents& small) {
    // Only where there is nothing to do can sizes be so large that their product does not fit.
    if (element_count(large) == 0 || element_count(small) == 0) return Pool{};
    const Shape sizes = ir::shape_of(std::span<const std::int64_t>(large));
    return Pool{Sliding::of(TESSERA_TRY(pool_window(call, spatial(sizes))), large, small),
                large[0] * large[1]};
  }
};

template <class W>
bool wins(const W& value, const W& best) {
  if constexpr (std::is_same_v<W, double>)
    if (std::isnan(value)) return !std::isnan(best);
  return value > best;
}

Result<void> run_max_pool(const CallInfo& call, std::span<const Array> inputs,
                          std::span<const Array> results) {
  const Pool pool = TESSERA_TRY(Pool::of(call, inputs[0].shape(), results[0].shape()));
  const Sliding& sliding = pool.sliding;
  return visit_wide(inputs[0].dtype, [&]<class W>(W*) -> Result<void> {
    const auto x = TESSERA_TRY(WideBuffer<W>::load(inputs[0]));
    auto values = TESSERA_TRY(WideBuffer<W>::zeros(results[0].size()));
    auto indices = TESSERA_TRY(WideBuffer<SignedWide>::zeros(results[1].size()));
    std::fill(indices.begin(), indices.end(), SignedWide(-1));  // nothing seen yet
    for (std::int64_t image = 0; image < pool.images; ++image) {
      const W* in = x.data() + image * sliding.size;
      W* best = values.data() + image * sliding.positions;
      SignedWide* best_at = indices.data() + image * sliding.positions;
      for (std::int64_t tap = 0; tap < sliding.taps; ++tap)
        sliding.for_each_run(
            tap, 0, sliding.positions,
            [&](std::int64_t at, std::int64_t from, std::int64_t stride, std::int64_t count) {
              for (std::int64_t i = 0; i < count; ++i, from += stride)
                if (best_at[at + i].v < 0 || wins(in[from], best[at + i])) {
                  best[at + i] = in[from];
                  best_at[at + i] = from;
                }
            });
    }
    values.store(results[0]);
    indices.store(results[1]);
    return {};
  });
}

/// How many elements each position averages over.
std::vector<double> averaged_counts(const CallInfo& call, const Sliding& sliding, const Window& window) {
  std::vector<double> counts(static_cast<std::size_t>(sliding.positions), 1);
  for (std::int64_t p = 0; p < sliding.positions; ++p) {
    std::int64_t rest = p;
    for (std::size_t i = sliding.axes.size(); i-- > 0; rest /= sliding.axes[i].positions) {
      const SlidingAxis& axis = sliding.axes[i];
      std::int64_t begin = rest % axis.positions * axis.stride - axis.pad;
      // Padding counts, but not what lies beyond it.
      std::int64_t end = std::min(begin + axis.kernel, axis.size + window[i].pad_end);
      if (!call.flag("count_include_pad")) {
        begin = std::max<std::int64_t>(begin, 0);
        end = std::min(end, axis.size);
      }
      counts[static_cast<std::size_t>(p)] *= static_cast<double>(end - begin);
    }
  }
  return counts;
}

/// Calls `f(element of the large side, element of the small side, count)` for all that the window joins.
template <class F>
Result<void> for_each_average(const CallInfo& call, const Extents& large, const Extents& small, F&& f) {
  const Pool pool = TESSERA_TRY(Pool::of(call, large, small));
  if (pool.images == 0) return {};
  const Sliding& sliding = pool.sliding;
  const Shape sizes = ir::shape_of(std::span<const std::int64_t>(large));
  const auto counts = averaged_counts(call, sliding, TESSERA_TRY(pool_window(call, spatial(sizes))));
  for (std::int64_t image = 0; image < pool.images; ++image)
    for (std::int64_t tap = 0; tap < sliding.taps; ++tap)
      sliding.for_each_run(tap, 0, sliding.positions,
                           [&](std::int64_t at, std::int64_t from, std::int64_t stride, std::int64_t count) {
                             for (std::int64_t i = 0; i < count; ++i)
                               f(image * sliding.size + from + i * stride, image * sliding.positions + at + i,
                                 counts[static_cast<std::size_t>(at + i)]);
                           });
  return {};
}

Result<void> run_avg_pool(const CallInfo& call, std::span<const Array> inputs,
                          std::span<const Array> results) {
  const auto x = TESSERA_TRY(WideBuffer<double>::load(inputs[0]));
  auto y = TESSERA_TRY(WideBuffer<double>::zeros(results[0].size()));
  auto counts = TESSERA_TRY(WideBuffer<double>::zeros(results[0].size()));
  TESSERA_TRY(for_each_average(call, inputs[0].shape(), results[0].shape(),
                               [&](std::int64_t large, std::int64_t small, double count) {
                                 y[small] += x[large];
                                 counts[small] = count;
                               }));
  // Divided at the end: what cancels is 0.
  for (std::int64_t i = 0; i < results[0].size(); ++i)
    if (counts[i] != 0) y[i] /= counts[i];
  y.store(results[0]);
  return {};
}

Result<void> run_avg_pool_gradient(const CallInfo& call, std::span<const Array> inputs,
                                   std::span<const Array> results) {
  const auto dy = TESSERA_TRY(WideBuffer<double>::load(inputs[0]));
  auto dx = TESSERA_TRY(WideBuffer<double>::zeros(results[0].size()));
  TESSERA_TRY(for_each_average(
      call, results[0].shape(), inputs[0].shape(),
      [&](std::int64_t large, std::int64_t small, double count) { dx[large] += dy[small] / count; }));
  dx.store(results[0]);
  return {};
}

// ---- gradients

/// [batch, channels, all spatial axes as one]
Shape joined(const Shape& shape) { return {shape[0], shape[1], ir::product(spatial(shape))}; }

/// The gradient goes to the element that was taken.
Values gradient_max_pool(GradientCall& g) {
  const Shape& shape = g.x().shape();
  const Value zeros = full(g.b, 0, {g.x().dtype(), joined(shape)});
  const Value at = reshape(g.y(1), joined(g.y(1).shape()));
  const Value dy = reshape(g.dy(), joined(g.dy().shape()));
  const Value dx =
      g.b.call("scatter_elements", {zeros, at, dy}, {{"axis", 2}, {"reduction", std::string("add")}});
  return {reshape(dx, shape)};
}

Attributes average_attributes_of(const CallInfo& call) {
  return {{"kernel", call.integers("kernel")},
          {"strides", call.integers("strides")},
          {"pads", call.integers("pads")},
          {"ceil_mode", call.flag("ceil_mode")},
          {"count_include_pad", call.flag("count_include_pad")}};
}

Values gradient_avg_pool(GradientCall& g) {
  Attributes attributes = average_attributes_of(g.info);
  attributes.set("size", Shape(spatial(g.x().shape())));
  return {g.b.call("avg_pool_gradient", {g.dy()}, std::move(attributes))};
}
Values gradient_avg_pool_gradient(GradientCall& g) {
  return {g.b.call("avg_pool", {g.dy()}, average_attributes_of(g.info))};
}

// ---- over whole images

template <bool largest>
Result<ValueTypes> infer_global(const CallInfo& call) {
  const ValueType& x = call.input(0);
  if (x.rank() < 3)
    return call.error("'x' (", x, ") has rank ", x.rank(), ", expected batch, channels and spatial axes");
  ValueType y = x;
  for (std::size_t i = 2; i < y.rank(); ++i) {
    if (largest && x.shape[i] == Dim(0)) return call.error("axis ", i, " of 'x' (", x, ") has no elements");
    y.shape[i] = 1;
  }
  return ValueTypes{std::move(y)};
}

std::vector<std::int64_t> spatial_axes(std::size_t rank) {
  std::vector<std::int64_t> out;
  for (std::size_t i = 2; i < rank; ++i) out.push_back(static_cast<std::int64_t>(i));
  return out;
}

constexpr std::string_view reduction_of(bool largest) { return largest ? "max" : "mean"; }

template <bool largest>
Values decompose_global(Builder& b, const CallInfo& call, std::span<const Value> x) {
  return {b.call(reduction_of(largest), {x[0]},
                 {{"axes", spatial_axes(call.input(0).rank())}, {"keepdims", true}})};
}

template <bool largest>
Result<void> run_global(const CallInfo& call, std::span<const Array> inputs, std::span<const Array> results) {
  const Card& reduction = *find_card(reduction_of(largest));
  const Attributes attributes{{"axes", spatial_axes(inputs[0].rank())}, {"keepdims", true}};
  const CallInfo reduced(reduction, call.inputs(), attributes);
  return run_reduction(reduced, *reduction.reduction, inputs[0], results[0]);
}

/// What the gradient of the reduction is.
template <bool largest>
Values gradient_global(GradientCall& g) {
  const std::vector<std::int64_t> axes = spatial_axes(g.x().rank());
  if constexpr (largest) {
    const Value hits = cast(g.b.call("eq", {g.x(), g.y()}), g.x().dtype());
    return {hits * (g.dy() / sum(hits, axes, true))};
  } else {
    const Value count = size_as_number(g.b, ir::product(spatial(g.x().shape())), g.x().dtype());
    return {broadcast_to(g.dy() / count, g.x().shape())};
  }
}

// ---- cards

constexpr Input input_dy[] = {{"dy"}};
constexpr std::string_view max_pool_results[] = {"values", "indices"};
constexpr AttributeSpec max_pool_attributes[] = {
    {"kernel", AttributeKind::integers, true}, {"strides", AttributeKind::integers},
    {"pads", AttributeKind::integers},         {"dilations", AttributeKind::integers},
    {"ceil_mode", AttributeKind::boolean},
};
constexpr AttributeSpec avg_pool_attributes[] = {
    {"kernel", AttributeKind::integers, true},
    {"strides", AttributeKind::integers},
    {"pads", AttributeKind::integers},
    {"ceil_mode", AttributeKind::boolean},
    {"count_include_pad", AttributeKind::boolean},
};
constexpr AttributeSpec avg_pool_gradient_attributes[] = {
    {"size", AttributeKind::shape, true},  {"kernel", AttributeKind::integers, true},
    {"strides", AttributeKind::integers},  {"pads", AttributeKind::integers},
    {"ceil_mode", AttributeKind::boolean}, {"count_include_pad", AttributeKind::boolean},
};

/// Every element of the small side looks at a window.
double work_of_pool(const CallInfo& call, const ValueTypes& results) {
  const Shape& small = call.card().name == "avg_pool_gradient" ? call.input(0).shape : results[0].shape;
  double out = element_estimate(small);
  for (const std::int64_t size : call.integers("kernel")) out *= static_cast<double>(size);
  return out;
}

constexpr Card pool_family[] = {
    {.name = "avg_pool",
     .summary = "mean of what a window sees; strides are 1 if not given, padding counts only if asked to",
     .inputs = input_x,
     .attributes = avg_pool_attributes,
     .onnx = {"AveragePool"},
     .spellings = "AvgPool1d AvgPool2d AvgPool3d avg_pool1d avg_pool2d avg_pool3d",
     .oracle = "torch:nn.functional.avg_pool2d",
     .infer = infer_avg_pool,
     .reference = run_avg_pool,
     .gradient = gradient_avg_pool,
     .work = work_of_pool},
    {.name = "avg_pool_gradient",
     .summary = "gradient of avg_pool for an input of sizes `size`, from that of the result",
     .inputs = input_dy,
     .attributes = avg_pool_gradient_attributes,
     .oracle = "none: checked as the adjoint of avg_pool",
     .infer = infer_avg_pool_gradient,
     .reference = run_avg_pool_gradient,
     .gradient = gradient_avg_pool_gradient,
     .work = work_of_pool},
    {.name = "global_avg_pool",
     .summary = "mean over all spatial axes, which become 1",
     .inputs = input_x,
     .traits = {.composite = true},
     .onnx = {"GlobalAveragePool"},
     .oracle = "torch:nn.functional.adaptive_avg_pool2d",
     .infer = infer_global<false>,
     .reference = run_global<false>,
     .gradient = gradient_global<false>,
     .decompose = decompose_global<false>},
    {.name = "global_max_pool",
     .summary = "largest element over all spatial axes, which become 1",
     .inputs = input_x,
     .T = number_dtypes,
     .traits = {.composite = true},
     .onnx = {"GlobalMaxPool"},
     .oracle = "torch:nn.functional.adaptive_max_pool2d",
     .infer = infer_global<true>,
     .reference = run_global<true>,
     .gradient = gradient_global<true>,
     .decompose = decompose_global<true>},
    {.name = "max_pool",
     .summary =
         "largest element that a window sees, and its index among the spatial elements of its channel; "
         "strides are 1 if not given; of equal ones the first counts, NaN is largest",
     .inputs = input_x,
     .attributes = max_pool_attributes,
     .results = max_pool_results,
     .T = number_dtypes,
     .onnx = {"MaxPool"},
     .spellings = "MaxPool1d MaxPool2d MaxPool3d max_pool1d max_pool2d max_pool3d",
     .oracle = "torch:nn.functional.max_pool2d",
     .infer = infer_max_pool,
     .reference = run_max_pool,
     .gradient = gradient_max_pool,
     .work = work_of_pool},
};

}  // namespace

std::span<const Card> tessera::op::pool_cards() { return pool_family; }
