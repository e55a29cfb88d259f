// Ops that move elements without changing them: other shapes, other orders, parts and joins.
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
  return ValueTypes{{call.input(0).dtype, TESSERA_TRY(resolved_shape(call))}};
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

Extents extents_of(const Shape& shape) {
  const auto numbers = ir::constant_shape(shape);
  TESSERA_CHECK(numbers.has_value(), "a layout needs numbers");
  return *numbers;
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

constexpr AttributeSpec shape_attribute[] = {{"shape", AttributeKind::shape, true}};
constexpr AttributeSpec transpose_attributes[] = {{"permutation", AttributeKind::integers}};

constexpr Card cards[] = {
    {.name = "broadcast_to",
     .summary = "repeated along axes of size 1 and new leading axes",
     .inputs = input_x,
     .attributes = shape_attribute,
     .T = all_dtypes,
     .traits = {.view = true},
     .oracle = "torch:broadcast_to",
     .infer = infer_broadcast,
     .gradient = gradient_broadcast,
     .view = view_broadcast},
    {.name = "reshape",
     .summary = "the same elements in another shape; one size may be -1",
     .inputs = input_x,
     .attributes = shape_attribute,
     .T = all_dtypes,
     .traits = {.view = true},
     .oracle = "torch:reshape",
     .infer = infer_reshape,
     .reference = run_reshape,
     .gradient = gradient_reshape,
     .view = view_reshape},
    {.name = "transpose",
     .summary = "axes in another order; without one, reversed",
     .inputs = input_x,
     .attributes = transpose_attributes,
     .T = all_dtypes,
     .traits = {.view = true},
     .onnx = {"Transpose"},
     .oracle = "torch:permute",
     .infer = infer_transpose,
     .gradient = gradient_transpose,
     .view = view_transpose},
};

}  // namespace

std::span<const Card> tessera::op::shape_cards() { return cards; }
