// Reductions over axes: sums, products, extremes, logic, norms, and where the extremes are.
#include "tessera/op/families/make.h"
#include "tessera/op/reference.h"

using namespace tessera;
using namespace tessera::op;

namespace tessera::op::formula {
namespace {

/// What most reductions have in common: elements as they are, the result as it is.
struct Plain {
  static auto map(const auto& x) { return x; }
  static auto finish(const auto& accumulated, const auto&) { return accumulated; }
};
struct Sum : Plain {
  template <class T>
  static T init() {
    return 0.0;
  }
  static auto combine(const auto& a, const auto& b) { return a + b; }
};
struct Mean : Sum {
  static auto finish(const auto& accumulated, const auto& count) { return accumulated / count; }
};
struct Prod : Plain {
  template <class T>
  static T init() {
    return 1.0;
  }
  static auto combine(const auto& a, const auto& b) { return a * b; }
};
struct Max : Plain {
  template <class T>
  static T init() {
    if constexpr (WideInteger<T>)
      return T(std::numeric_limits<decltype(T::v)>::min());
    else
      return -std::numeric_limits<double>::infinity();
  }
  static auto combine(const auto& a, const auto& b) { return maximum(a, b); }
};
struct Min : Plain {
  template <class T>
  static T init() {
    if constexpr (WideInteger<T>)
      return T(std::numeric_limits<decltype(T::v)>::max());
    else
      return std::numeric_limits<double>::infinity();
  }
  static auto combine(const auto& a, const auto& b) { return minimum(a, b); }
};
/// Booleans as the numbers 0 and 1.
template <class T>
T number_of(bool truth) {
  return truth ? T(1.0) : T(0.0);
}
struct Any : Plain {
  template <class T>
  static T init() {
    return 0.0;
  }
  template <Wide T>
  static T combine(T a, T b) {
    return number_of<T>(is_true(a) || is_true(b));
  }
  static Scalar combine(const Scalar& a, const Scalar& b) { return either(is_true(a), is_true(b)); }
};
struct All : Plain {
  template <class T>
  static T init() {
    return 1.0;
  }
  template <Wide T>
  static T combine(T a, T b) {
    return number_of<T>(is_true(a) && is_true(b));
  }
  static Scalar combine(const Scalar& a, const Scalar& b) { return both(is_true(a), is_true(b)); }
};
struct L1Norm : Sum {
  static auto map(const auto& x) { return abs(x); }
};
struct L2Norm : Sum {
  static auto map(const auto& x) { return x * x; }
  static auto finish(const auto& accumulated, const auto&) { return sqrt(accumulated); }
};

}  // namespace
}  // namespace tessera::op::formula

namespace {

using namespace tessera::op::formula;

Result<Shape> reduced_shape(const CallInfo& call) {
  const Shape& shape = call.input(0).shape;
  const auto axes = TESSERA_TRY(call.axes("axes", shape.size()));
  Shape out;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const bool reduced = std::find(axes.begin(), axes.end(), i) != axes.end();
    if (!reduced) out.push_back(shape[i]);
    if (reduced && call.flag("keepdims")) out.push_back(1);
  }
  return out;
}

Result<ValueTypes> infer_reduction(const CallInfo& call) {
  const Dtype dtype = call.card().result == ResultDtype::boolean ? Dtype::boolean : call.input(0).dtype;
  auto shape = TESSERA_TRY(reduced_shape(call));
  return ValueTypes{{dtype, std::move(shape)}};
}

/// A reduced value with its axes back as 1, so that it broadcasts over the input.
Value with_axes(const GradientCall& g, Value reduced) {
  Shape shape = g.x().shape();
  const auto axes = value_or_throw(g.info.axes("axes", shape.size()));
  for (std::size_t axis : axes) shape[axis] = 1;
  return reshape(reduced, shape);
}

Value like_input(const GradientCall& g, Value reduced) {
  return broadcast_to(with_axes(g, reduced), g.x().shape());
}

Values sum_gradient(GradientCall& g) { return {like_input(g, g.dy())}; }

/// The number of elements that are reduced into one, as a value: it may be symbolic.
Value reduced_count(const GradientCall& g) {
  Dim count = 1;
  for (std::size_t axis : value_or_throw(g.info.axes("axes", g.x().rank())))
    count = count * g.x().shape()[axis];
  return size_as_number(g.b, count, g.x().dtype());
}
Values mean_gradient(GradientCall& g) { return {like_input(g, g.dy() / reduced_count(g))}; }

/// The product of all others, which is right also where an element is 0: exclusive products from both ends.
Values prod_gradient(GradientCall& g) {
  const auto axes = value_or_throw(g.info.axes("axes", g.x().rank()));
  if (axes.empty()) return {g.dy()};
  // The reduced axes are moved to the end and joined, so that the scans run along one axis.
  std::vector<std::int64_t> order, inverse(g.x().rank());
  Shape kept;
  Dim joined = 1;
  for (std::size_t i = 0; i < g.x().rank(); ++i)
    if (std::find(axes.begin(), axes.end(), i) == axes.end()) {
      order.push_back(static_cast<std::int64_t>(i));
      kept.push_back(g.x().shape()[i]);
    }
  for (std::size_t axis : axes) {
    order.push_back(static_cast<std::int64_t>(axis));
    joined = joined * g.x().shape()[axis];
  }
  for (std::size_t i = 0; i < order.size(); ++i)
    inverse[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  const Value moved = transpose(g.x(), order);
  Shape flat = kept;
  flat.push_back(joined);
  const Value x = reshape(moved, flat);
  const std::int64_t last = static_cast<std::int64_t>(kept.size());
  const Value before = g.b.call("cumprod", {x}, {{"axis", last}, {"exclusive", true}});
  const Value after = g.b.call("cumprod", {x}, {{"axis", last}, {"exclusive", true}, {"reverse", true}});
  const Value others = transpose(reshape(before * after, moved.shape()), inverse);
  return {like_input(g, g.dy()) * others};
}

/// The gradient goes to the elements that are the extreme, in equal parts.
Values extreme_gradient(GradientCall& g) {
  const Value hits = cast(g.b.call("eq", {g.x(), with_axes(g, g.y())}), g.x().dtype());
  std::vector<std::int64_t> axes;
  for (std::size_t axis : value_or_throw(g.info.axes("axes", g.x().rank())))
    axes.push_back(static_cast<std::int64_t>(axis));
  return {hits * (with_axes(g, g.dy()) / sum(hits, axes, true))};
}

Values l1_gradient(GradientCall& g) { return {like_input(g, g.dy()) * unary("sign", g.x())}; }
Values l2_gradient(GradientCall& g) {
  const Value y = with_axes(g, g.y()), zero = g.b.constant(0, y.dtype());
  // At 0 the norm has no gradient; 0 is the one of least length.
  const Value safe = where(g.b.call("eq", {y, zero}), g.b.constant(1, y.dtype()), y);
  return {g.x() * (with_axes(g, g.dy()) / safe)};
}

Values logsumexp_gradient(GradientCall& g) {
  return {unary("exp", g.x() - with_axes(g, g.y())) * with_axes(g, g.dy())};
}

Values logsumexp_decompose(Builder& b, const CallInfo& call, std::span<const Value> x) {
  Dim count = 1;
  for (std::size_t axis : value_or_throw(call.axes("axes", x[0].rank()))) count = count * x[0].shape()[axis];
  // Nothing has no maximum; its sum is 0.
  if (count == Dim(0))
    return {full(b, -std::numeric_limits<double>::infinity(), value_or_throw(infer_reduction(call))[0])};
  const Attributes keep{{"axes", call.integers("axes")}, {"keepdims", true}};
  const Value largest = b.call("max", {x[0]}, keep);
  // An infinite maximum would make inf - inf.
  const Value shift = where(unary("isfinite", largest), largest, zeros_like(largest));
  const Value total = unary("log", b.call("sum", {unary("exp", x[0] - shift)}, keep)) + shift;
  if (call.flag("keepdims")) return {total};
  return {reshape(total, value_or_throw(reduced_shape(call)))};
}

Result<void> logsumexp_reference(const CallInfo& call, std::span<const Array> inputs,
                                 std::span<const Array> results) {
  // Two passes over each row in double: the maximum, then the sum of exponentials relative to it.
  const auto max_body = make_reduction<Max, Domain::floats, false>();
  HostTensor largest = TESSERA_TRY(HostTensor::allocate(Dtype::f64, results[0].shape()));
  TESSERA_TRY(run_reduction(call, max_body, inputs[0], largest.array()));
  const Array& x = inputs[0];
  const auto axes = TESSERA_TRY(call.axes("axes", x.rank()));
  HostTensor totals = TESSERA_TRY(HostTensor::allocate(Dtype::f64, results[0].shape()));
  // Every element of x, and the element of the (contiguous) result it belongs to.
  Layout to{x.shape(), Extents(x.rank(), 0), 0};
  std::int64_t stride = 1;
  for (std::size_t i = x.rank(); i-- > 0;) {
    if (std::find(axes.begin(), axes.end(), i) != axes.end()) continue;
    to.strides[i] = stride;
    stride *= x.shape()[i];
  }
  const auto load = loader<double>(x.dtype);
  const auto maxima = largest.values<double>();
  const auto sums = totals.values<double>();
  for_each_offset<2>(x.shape(), {&x.layout, &to}, [&](const auto& at) {
    double value = 0;
    load(x.data, at[0], 1, 1, &value);
    const double shift = maxima[static_cast<std::size_t>(at[1])];
    sums[static_cast<std::size_t>(at[1])] += std::exp(value - (std::isfinite(shift) ? shift : 0));
  });
  for (std::size_t i = 0; i < sums.size(); ++i)
    sums[i] = std::log(sums[i]) + (std::isfinite(maxima[i]) ? maxima[i] : 0);
  copy_elements(totals.array(), results[0]);
  return {};
}

// ---- where the extremes are

Result<ValueTypes> infer_arg(const CallInfo& call) {
  Shape shape = call.input(0).shape;
  const std::size_t axis = TESSERA_TRY(call.axis(call.integer("axis"), shape.size()));
  if (shape[axis] == Dim(0)) return call.error("axis ", axis, " of 'x' has no elements");
  if (call.flag("keepdims"))
    shape[axis] = 1;
  else
    shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
  return ValueTypes{{Dtype::i64, shape}};
}

/// The first extreme counts, or the last if `select_last`. NaN is the largest and the smallest.
template <bool largest>
Result<void> arg_reference(const CallInfo& call, std::span<const Array> inputs,
                           std::span<const Array> results) {
  const Array& x = inputs[0];
  const std::size_t axis = TESSERA_TRY(call.axis(call.integer("axis"), x.rank()));
  const bool last = call.flag("select_last");
  Layout rows = x.layout;
  const std::int64_t length = rows.shape[axis], stride = rows.strides[axis];
  rows.shape.erase(rows.shape.begin() + static_cast<std::ptrdiff_t>(axis));
  rows.strides.erase(rows.strides.begin() + static_cast<std::ptrdiff_t>(axis));
  const Layout flat = contiguous(rows.shape);
  auto* out = reinterpret_cast<std::int64_t*>(results[0].data);
  visit_wide(x.dtype, [&]<class W>(W*) {
    std::vector<W> row(static_cast<std::size_t>(length));
    const auto load = loader<W>(x.dtype);
    const auto better = [](const W& a, const W& b) {
      if constexpr (std::is_same_v<W, double>)
        if (std::isnan(b)) return false;
      if constexpr (std::is_same_v<W, double>)
        if (std::isnan(a)) return true;
      return largest ? a > b : a < b;
    };
    for_each_offset<2>(rows.shape, {&rows, &flat}, [&](const auto& at) {
      load(x.data, at[0], stride, row.size(), row.data());
      std::size_t best = 0;
      for (std::size_t i = 1; i < row.size(); ++i)
        if (better(row[i], row[best]) || (last && !better(row[best], row[i]))) best = i;
      out[at[1]] = static_cast<std::int64_t>(best);
    });
  });
  return {};
}

constexpr AttributeSpec arg_attributes[] = {
    {.name = "axis", .kind = AttributeKind::integer, .integer = 0},
    {.name = "keepdims", .kind = AttributeKind::boolean},
    {.name = "select_last", .kind = AttributeKind::boolean},
};

template <class F, Domain domain, bool needs_elements = false>
constexpr Card reduction(Card card) {
  card.inputs = input_x;
  card.attributes = reduction_attributes;
  card.traits.reduction = true;
  card.infer = infer_reduction;
  card.reduction = &reduction_body<F, domain, needs_elements>;
  return card;
}

constexpr Card reduction_family[] = {
    reduction<All, Domain::integers>({.name = "all",
                                      .summary = "whether every element is true",
                                      .T = bool_dtypes,
                                      .oracle = "torch:all",
                                      .no_gradient = "the result is boolean"}),
    reduction<Any, Domain::integers>({.name = "any",
                                      .summary = "whether one element is true",
                                      .T = bool_dtypes,
                                      .oracle = "torch:any",
                                      .no_gradient = "the result is boolean"}),
    {.name = "argmax",
     .summary = "index of the largest element along an axis",
     .inputs = input_x,
     .attributes = arg_attributes,
     .T = all_dtypes,
     .onnx = {"ArgMax"},
     .oracle = "torch:argmax",
     .infer = infer_arg,
     .reference = arg_reference<true>,
     .no_gradient = "the result is an index"},
    {.name = "argmin",
     .summary = "index of the smallest element along an axis",
     .inputs = input_x,
     .attributes = arg_attributes,
     .T = all_dtypes,
     .onnx = {"ArgMin"},
     .oracle = "torch:argmin",
     .infer = infer_arg,
     .reference = arg_reference<false>,
     .no_gradient = "the result is an index"},
    reduction<L1Norm, Domain::numbers>({.name = "l1_norm",
                                        .summary = "sum of absolute values",
                                        .T = number_dtypes,
                                        .onnx = {"ReduceL1"},
                                        .oracle = "numpy:linalg.norm",
                                        .gradient = l1_gradient}),
    reduction<L2Norm, Domain::floats>({.name = "l2_norm",
                                       .summary = "square root of the sum of squares",
                                       .onnx = {"ReduceL2"},
                                       .oracle = "numpy:linalg.norm",
                                       .gradient = l2_gradient}),
    {.name = "logsumexp",
     .summary = "log of the sum of exponentials, without overflow",
     .inputs = input_x,
     .attributes = reduction_attributes,
     .traits = {.reduction = true, .composite = true},
     .onnx = {"ReduceLogSumExp"},
     .oracle = "torch:logsumexp",
     .infer = infer_reduction,
     .reference = logsumexp_reference,
     .gradient = logsumexp_gradient,
     .decompose = logsumexp_decompose},
    reduction<Max, Domain::numbers, true>({.name = "max",
                                           .summary = "the largest element; NaN if one is",
                                           .T = all_dtypes,
                                           .onnx = {"ReduceMax"},
                                           .spellings = "amax",
                                           .oracle = "torch:amax",
                                           .gradient = extreme_gradient}),
    reduction<Mean, Domain::floats>({.name = "mean",
                                     .summary = "arithmetic mean",
                                     .onnx = {"ReduceMean"},
                                     .oracle = "torch:mean",
                                     .gradient = mean_gradient}),
    reduction<Min, Domain::numbers, true>({.name = "min",
                                           .summary = "the smallest element; NaN if one is",
                                           .T = all_dtypes,
                                           .onnx = {"ReduceMin"},
                                           .spellings = "amin",
                                           .oracle = "torch:amin",
                                           .gradient = extreme_gradient}),
    reduction<Prod, Domain::numbers>({.name = "prod",
                                      .summary = "product",
                                      .T = number_dtypes,
                                      .onnx = {"ReduceProd"},
                                      .oracle = "torch:prod",
                                      .gradient = prod_gradient}),
    reduction<Sum, Domain::numbers>({.name = "sum",
                                     .summary = "sum",
                                     .T = number_dtypes,
                                     .onnx = {"ReduceSum"},
                                     .oracle = "torch:sum",
                                     .gradient = sum_gradient}),
};

}  // namespace

std::span<const Card> tessera::op::reduction_cards() { return reduction_family; }
