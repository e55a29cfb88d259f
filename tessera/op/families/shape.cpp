// Other shapes and orders of the same elements, and their repetition.
#include <algorithm>
#include <numeric>

#include "tessera/op/families/make.h"

using namespace tessera;
using namespace tessera::op;

namespace {

// ---- reshape

/// The shape that is asked for, with -1 resolved.
Result<Shape> resolved_shape(const CallInfo& call) {
  Shape shape = call.shape("shape");
  const Shape& from = call.input(0).shape;
  std::optional<std::size_t> open;
  Dim known = 1;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == Dim(-1)) {
      if (open) return call.error("'shape' ", shape, " has -1 twice");
      open = i;
    } else {
      if (shape[i].is_constant() && shape[i].value() < 0)
        return call.error("'shape' ", shape, " has the negative size ", shape[i]);
      known = known * shape[i];
    }
  }
  const Dim total = ir::product(from);
  if (open) {
    if (known == Dim(0))
      return call.error("-1 in 'shape' ", shape, " cannot be resolved: the other sizes make 0");
    shape[*open] = floor_div(total, known);
    if (total.is_constant() && known.is_constant() && total.value() % known.value() != 0)
      return call.error("'x' of shape ", from, " has ", total, " elements, which cannot be 'shape' ",
                        call.shape("shape"));
    return shape;
  }
  auto same = call.unify(total, known, "number of elements");
  if (!same)
    return call.error("'x' of shape ", from, " has ", total, " elements, 'shape' ", shape, " has ", known);
  return shape;
}

Result<ValueTypes> infer_reshape(const CallInfo& call) {
  auto shape = TESSERA_TRY(resolved_shape(call));
  return ValueTypes{{call.input(0).dtype, std::move(shape)}};
}

/// Strides for the new shape if no element has to move: groups of old axes are matched with groups of new
/// ones.
std::optional<Layout> reshaped_layout(const Layout& from, const Extents& shape) {
  Layout out{shape, Extents(shape.size(), 1), from.offset};
  if (element_count(from.shape) == 0) return out.strides = contiguous(shape).strides, out;
  Extents old_shape, old_strides;  // without axes of size 1, which can have any stride
  for (std::size_t i = 0; i < from.rank(); ++i)
    if (from.shape[i] != 1) {
      old_shape.push_back(from.shape[i]);
      old_strides.push_back(from.strides[i]);
    }
  std::size_t old_at = 0, new_at = 0;
  while (old_at < old_shape.size() && new_at < shape.size()) {
    std::size_t old_end = old_at + 1, new_end = new_at + 1;
    std::int64_t old_count = old_shape[old_at], new_count = shape[new_at];
    while (old_count != new_count)
      if (old_count < new_count)
        old_count *= old_shape[old_end++];
      else
        new_count *= shape[new_end++];
    for (std::size_t i = old_at; i + 1 < old_end; ++i)
      if (old_strides[i] != old_strides[i + 1] * old_shape[i + 1]) return std::nullopt;
    std::int64_t stride = old_strides[old_end - 1];
    for (std::size_t i = new_end; i-- > new_at;) {
      out.strides[i] = stride;
      stride *= shape[i];
    }
    old_at = old_end;
    new_at = new_end;
  }
  return out;
}

std::optional<Layout> view_reshape(const CallInfo& call, const Layout& input) {
  return reshaped_layout(input, extents_of(value_or_throw(resolved_shape(call))));
}

Result<void> run_reshape(const CallInfo& call, std::span<const Array> inputs,
                         std::span<const Array> results) {
  // The result is contiguous: written as if it had the shape of the input.
  (void)call;
  copy_elements(inputs[0], {results[0].dtype, contiguous(inputs[0].shape()), results[0].data});
  return {};
}

Values gradient_reshape(GradientCall& g) { return {reshape(g.dy(), g.x().shape())}; }

// ---- transpose

Result<std::vector<std::size_t>> permutation_of(const CallInfo& call) {
  const std::size_t rank = call.input(0).rank();
  const auto& given = call.integers("permutation");
  std::vector<std::size_t> out(rank);
  if (given.empty()) {  // all axes reversed
    for (std::size_t i = 0; i < rank; ++i) out[i] = rank - 1 - i;
    return out;
  }
  if (given.size() != rank)
    return call.error("'permutation' [", join(given, ", "), "] has ", given.size(), " axes, 'x' has ", rank);
  std::vector<bool> used(rank, false);
  for (std::size_t i = 0; i < rank; ++i) {
    out[i] = TESSERA_TRY(call.axis(given[i], rank, "axis in 'permutation'"));
    if (used[out[i]]) return call.error("axis ", given[i], " is given twice in 'permutation'");
    used[out[i]] = true;
  }
  return out;
}

Result<ValueTypes> infer_transpose(const CallInfo& call) {
  ValueType out{call.input(0).dtype, {}};
  for (std::size_t axis : TESSERA_TRY(permutation_of(call))) out.shape.push_back(call.input(0).shape[axis]);
  return ValueTypes{std::move(out)};
}

std::optional<Layout> view_transpose(const CallInfo& call, const Layout& input) {
  Layout out{{}, {}, input.offset};
  for (std::size_t axis : value_or_throw(permutation_of(call))) {
    out.shape.push_back(input.shape[axis]);
    out.strides.push_back(input.strides[axis]);
  }
  return out;
}

Values gradient_transpose(GradientCall& g) {
  const auto permutation = value_or_throw(permutation_of(g.info));
  std::vector<std::int64_t> inverse(permutation.size());
  for (std::size_t i = 0; i < permutation.size(); ++i) inverse[permutation[i]] = static_cast<std::int64_t>(i);
  return {transpose(g.dy(), inverse)};
}

// ---- broadcast_to

Result<ValueTypes> infer_broadcast(const CallInfo& call) {
  const Shape &from = call.input(0).shape, &to = call.shape("shape");
  if (from.size() > to.size())
    return call.error("'x' of shape ", from, " cannot be broadcast to ", to, ", which has fewer axes");
  for (std::size_t i = 0; i < from.size(); ++i) {
    const Dim &x = from[i], &y = to[to.size() - from.size() + i];
    if (x == Dim(1)) continue;
    auto same = call.unify(x, y, "size");
    if (!same)
      return call.error("'x' of shape ", from, " cannot be broadcast to ", to, ": ", x, " and ", y,
                        " do not agree");
  }
  return ValueTypes{{call.input(0).dtype, to}};
}

std::optional<Layout> view_broadcast(const CallInfo& call, const Layout& input) {
  return broadcast_layout(input, extents_of(call.shape("shape")));
}

Values gradient_broadcast(GradientCall& g) { return {sum_to(g.dy(), g.x().shape())}; }

// ---- squeeze, unsqueeze

/// Which axes go.
Result<std::vector<bool>> squeezed_axes(const CallInfo& call) {
  const Shape& shape = call.input(0).shape;
  std::vector<bool> out(shape.size(), false);
  if (call.integers("axes").empty()) {
    for (std::size_t i = 0; i < shape.size(); ++i) {
      out[i] = provably_equal(shape[i], 1);
      if (!out[i] && !provably_different(shape[i], 1))
        return call.error("axis ", i, " of 'x' has size ", shape[i],
                          ", which may be 1: 'axes' must be given");
    }
    return out;
  }
  for (std::size_t axis : TESSERA_TRY(call.axes("axes", shape.size()))) {
    if (!call.unify(shape[axis], 1, "size"))
      return call.error("axis ", axis, " of 'x' has size ", shape[axis], ", only 1 can be left out");
    out[axis] = true;
  }
  return out;
}

Result<ValueTypes> infer_squeeze(const CallInfo& call) {
  ValueType out{call.input(0).dtype, {}};
  const auto gone = TESSERA_TRY(squeezed_axes(call));
  for (std::size_t i = 0; i < gone.size(); ++i)
    if (!gone[i]) out.shape.push_back(call.input(0).shape[i]);
  return ValueTypes{std::move(out)};
}

std::optional<Layout> view_squeeze(const CallInfo& call, const Layout& input) {
  Layout out{{}, {}, input.offset};
  const auto gone = value_or_throw(squeezed_axes(call));
  for (std::size_t i = 0; i < gone.size(); ++i)
    if (!gone[i]) {
      out.shape.push_back(input.shape[i]);
      out.strides.push_back(input.strides[i]);
    }
  return out;
}

/// Which axes of the result are new.
Result<std::vector<bool>> new_axes(const CallInfo& call) {
  const auto& given = call.integers("axes");
  std::vector<bool> out(call.input(0).rank() + given.size(), false);
  for (std::int64_t value : given) {
    const std::size_t axis = TESSERA_TRY(call.axis(value, out.size(), "axis in 'axes'"));
    if (out[axis]) return call.error("axis ", axis, " is given twice in 'axes'");
    out[axis] = true;
  }
  return out;
}

Result<ValueTypes> infer_unsqueeze(const CallInfo& call) {
  ValueType out{call.input(0).dtype, {}};
  std::size_t from = 0;
  for (bool is_new : TESSERA_TRY(new_axes(call)))
    out.shape.push_back(is_new ? Dim(1) : call.input(0).shape[from++]);
  return ValueTypes{std::move(out)};
}

std::optional<Layout> view_unsqueeze(const CallInfo& call, const Layout& input) {
  Layout out{{}, {}, input.offset};
  std::size_t from = 0;
  for (bool is_new : value_or_throw(new_axes(call))) {
    out.shape.push_back(is_new ? 1 : input.shape[from]);
    out.strides.push_back(is_new ? 0 : input.strides[from]);
    if (!is_new) ++from;
  }
  return out;
}

// ---- flip

Result<ValueTypes> infer_flip(const CallInfo& call) {
  TESSERA_TRY(call.axes("axes", call.input(0).rank()));
  return ValueTypes{call.input(0)};
}

std::optional<Layout> view_flip(const CallInfo& call, const Layout& input) {
  Layout out = input;
  for (std::size_t axis : value_or_throw(call.axes("axes", input.rank())))
    out = part_of(out, axis, out.shape[axis] - 1, out.shape[axis], -1);
  return out;
}

Values gradient_flip(GradientCall& g) {
  return {g.b.call("flip", {g.dy()}, {{"axes", g.info.integers("axes")}})};
}

// ---- tile

/// The shape of `x` and the repeats with as many axes: missing ones are 1, in front.
struct Tiling {
  Shape shape;
  Shape repeats;
};

Tiling tiling_of(const CallInfo& call) {
  Tiling out{call.input(0).shape, call.shape("repeats")};
  while (out.shape.size() < out.repeats.size()) out.shape.insert(out.shape.begin(), Dim(1));
  while (out.repeats.size() < out.shape.size()) out.repeats.insert(out.repeats.begin(), Dim(1));
  return out;
}

Result<ValueTypes> infer_tile(const CallInfo& call) {
  const Tiling tiling = tiling_of(call);
  ValueType out{call.input(0).dtype, {}};
  for (std::size_t i = 0; i < tiling.shape.size(); ++i) {
    if (bounds(tiling.repeats[i]).upper.value_or(0) < 0)
      return call.error("'repeats' ", call.shape("repeats"), " has the negative number ", tiling.repeats[i]);
    out.shape.push_back(tiling.shape[i] * tiling.repeats[i]);
  }
  return ValueTypes{std::move(out)};
}

Result<void> run_tile(const CallInfo& call, std::span<const Array> inputs, std::span<const Array> results) {
  // Each axis as two: which repetition, and the index in it. The input has stride 0 along the first.
  const Tiling tiling = tiling_of(call);
  const Layout whole = broadcast_layout(inputs[0].layout, extents_of(tiling.shape));
  Layout from{{}, {}, whole.offset}, to{{}, {}, results[0].layout.offset};
  for (std::size_t i = 0; i < whole.rank(); ++i)
    for (const bool repetition : {true, false}) {
      const std::int64_t size = repetition ? tiling.repeats[i].value() : whole.shape[i];
      from.shape.push_back(size);
      from.strides.push_back(repetition ? 0 : whole.strides[i]);
      to.shape.push_back(size);
      to.strides.push_back(results[0].layout.strides[i] * (repetition ? whole.shape[i] : 1));
    }
  copy_elements({inputs[0].dtype, from, inputs[0].data}, {results[0].dtype, to, results[0].data});
  return {};
}

/// The shape as three sizes: before an axis, the axis, behind it.
Shape around(std::span<const Dim> shape, std::size_t axis) {
  return {ir::product(shape.first(axis)), shape[axis], ir::product(shape.subspan(axis + 1))};
}

/// One axis after the other, each sum over three or four axes, so that no rank is too high.
Values gradient_tile(GradientCall& g) {
  const Tiling tiling = tiling_of(g.info);
  Shape shape = g.y().shape();
  Value dx = g.dy();
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (tiling.repeats[i] == Dim(1)) continue;
    const Shape parts = around(shape, i);
    dx = sum(reshape(dx, {parts[0], tiling.repeats[i], tiling.shape[i], parts[2]}), {1}, false);
    shape[i] = tiling.shape[i];
  }
  return {reshape(dx, g.x().shape())};
}

Values decompose_tile(Builder&, const CallInfo& call, std::span<const Value> inputs) {
  const Tiling tiling = tiling_of(call);
  Shape shape = tiling.shape;
  Value x = inputs[0];
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (tiling.repeats[i] == Dim(1)) continue;
    const Shape parts = around(shape, i);
    const Dim rest = parts[1] * parts[2];
    x = broadcast_to(reshape(x, {parts[0], 1, rest}), {parts[0], tiling.repeats[i], rest});
    shape[i] = shape[i] * tiling.repeats[i];
  }
  return {reshape(x, shape)};
}

constexpr AttributeSpec axes_attribute[] = {{"axes", AttributeKind::integers}};
constexpr AttributeSpec new_axes_attribute[] = {{"axes", AttributeKind::integers, true}};
constexpr AttributeSpec tile_attributes[] = {{"repeats", AttributeKind::shape, true}};
constexpr AttributeSpec shape_attribute[] = {{"shape", AttributeKind::shape, true}};
constexpr AttributeSpec transpose_attributes[] = {{"permutation", AttributeKind::integers}};

constexpr Card shape_family[] = {
    {.name = "broadcast_to",
     .summary = "repeated along axes of size 1 and new leading axes",
     .inputs = input_x,
     .attributes = shape_attribute,
     .T = all_dtypes,
     .traits = {.view = true, .broadcast = true},
     .spellings = "Expand expand",
     .oracle = "torch:broadcast_to",
     .infer = infer_broadcast,
     .gradient = gradient_broadcast,
     .view = view_broadcast},
    {.name = "flip",
     .summary = "the order of elements reversed along axes; without any, along all",
     .inputs = input_x,
     .attributes = axes_attribute,
     .T = all_dtypes,
     .traits = {.view = true},
     .oracle = "torch:flip",
     .infer = infer_flip,
     .gradient = gradient_flip,
     .view = view_flip},
    {.name = "reshape",
     .summary = "the same elements in another shape; one size may be -1",
     .inputs = input_x,
     .attributes = shape_attribute,
     .T = all_dtypes,
     .traits = {.view = true},
     .spellings = "Reshape _unsafe_view view",
     .oracle = "torch:reshape",
     .infer = infer_reshape,
     .reference = run_reshape,
     .gradient = gradient_reshape,
     .view = view_reshape},
    {.name = "squeeze",
     .summary = "without axes of size 1: those named, or all",
     .inputs = input_x,
     .attributes = axes_attribute,
     .T = all_dtypes,
     .traits = {.view = true},
     .spellings = "Squeeze",
     .oracle = "numpy:squeeze",
     .infer = infer_squeeze,
     .gradient = gradient_reshape,
     .view = view_squeeze},
    {.name = "tile",
     .summary = "repeated along each axis; missing axes and repeats are 1, in front",
     .inputs = input_x,
     .attributes = tile_attributes,
     .T = all_dtypes,
     .traits = {.composite = true},
     .spellings = "Tensor.repeat Tile aten::repeat",
     .oracle = "torch:tile",
     .infer = infer_tile,
     .reference = run_tile,
     .gradient = gradient_tile,
     .decompose = decompose_tile},
    {.name = "transpose",
     .summary = "axes in another order; without one, reversed",
     .inputs = input_x,
     .attributes = transpose_attributes,
     .T = all_dtypes,
     .traits = {.view = true},
     .onnx = {"Transpose"},
     .spellings = "Tensor.t aten::t moveaxis movedim permute swapaxes swapdims torch.t",
     .oracle = "torch:permute",
     .infer = infer_transpose,
     .gradient = gradient_transpose,
     .view = view_transpose},
    {.name = "unsqueeze",
     .summary = "with new axes of size 1, counted in the result",
     .inputs = input_x,
     .attributes = new_axes_attribute,
     .T = all_dtypes,
     .traits = {.view = true},
     .spellings = "Unsqueeze expand_dims",
     .oracle = "torch:unsqueeze",
     .infer = infer_unsqueeze,
     .gradient = gradient_reshape,
     .view = view_unsqueeze},
};

}  // namespace

std::span<const Card> tessera::op::shape_cards() { return shape_family; }
