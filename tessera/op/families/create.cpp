// Tensors made from numbers and places: one number everywhere, ranges, the identity, triangles.
#include <algorithm>

#include "tessera/op/families/make.h"

using namespace tessera;
using namespace tessera::op;

namespace f = tessera::op::formula;

namespace {

// ---- full

Result<ValueTypes> infer_full(const CallInfo& call) {
  return ValueTypes{{call.input(0).dtype, call.shape("shape")}};
}

Result<void> run_full(const CallInfo&, std::span<const Array> inputs, std::span<const Array> results) {
  fill_elements(results[0], inputs[0], inputs[0].layout.offset);
  return {};
}

ir::Scalar full_element(const CallInfo&, const Place&, std::span<const ir::Scalar> in) { return in[0]; }

// ---- arange

Result<ValueTypes> infer_arange(const CallInfo& call) {
  return ValueTypes{{call.input(0).dtype, {call.size("count")}}};
}

Result<void> run_arange(const CallInfo&, std::span<const Array> inputs, std::span<const Array> results) {
  const Array& y = results[0];
  visit_wide(y.dtype, [&]<class W>(W*) {
    W start{}, step{};
    loader<W>(y.dtype)(inputs[0].data, inputs[0].layout.offset, 1, 1, &start);
    loader<W>(y.dtype)(inputs[1].data, inputs[1].layout.offset, 1, 1, &step);
    for (std::int64_t i = 0; i < y.size(); ++i) {
      const W value = f::fma(W(i), step, start);
      storer<W>(y.dtype)(y.data, y.layout.offset + i * y.layout.strides[0], 1, 1, &value);
    }
  });
  return {};
}

ir::Scalar arange_element(const CallInfo& call, const Place& at, std::span<const ir::Scalar> in) {
  const Dtype wide = ir::is_float(call.input(0).dtype) ? Dtype::f64 : Dtype::i64;
  return f::fma(f::cast(at.number, wide), f::cast(in[1], wide), f::cast(in[0], wide));
}

// ---- eye, tril, triu

/// column - row <= diagonal, and the like.
f::Scalar across(const Place& at) { return at.axes[at.axes.size() - 1] - at.axes[at.axes.size() - 2]; }
f::Scalar diagonal_of(const CallInfo& call) {
  return f::Scalar(ir::ExprRef(ir::int_const(call.integer("diagonal"))));
}

Result<ValueTypes> infer_eye(const CallInfo& call) {
  const Shape& shape = call.shape("shape");
  if (shape.size() != 2) return call.error("'shape' ", shape, " has ", shape.size(), " sizes, expected 2");
  return ValueTypes{{call.dtype("dtype"), shape}};
}

Result<void> run_eye(const CallInfo& call, std::span<const Array>, std::span<const Array> results) {
  const Array& y = results[0];
  const auto store = storer<SignedWide>(y.dtype);
  for_each_place(y.shape(), [&](const Extents& at) {
    const SignedWide value = at[1] - at[0] == call.integer("diagonal") ? 1 : 0;
    store(y.data, y.layout.offset + at[0] * y.layout.strides[0] + at[1] * y.layout.strides[1], 1, 1, &value);
  });
  return {};
}

ir::Scalar eye_element(const CallInfo& call, const Place& at, std::span<const ir::Scalar>) {
  return f::select(across(at) == diagonal_of(call), 1.0, 0.0);
}

enum class Triangle : std::uint8_t { lower, upper };

Result<ValueTypes> infer_triangle(const CallInfo& call) {
  if (call.input(0).rank() < 2)
    return call.error("'x' has rank ", call.input(0).rank(), ", at least 2 is needed");
  return ValueTypes{call.input(0)};
}

template <Triangle which>
Result<void> run_triangle(const CallInfo& call, std::span<const Array> inputs,
                          std::span<const Array> results) {
  const Array &x = inputs[0], &y = results[0];
  const std::int64_t diagonal = call.integer("diagonal");
  copy_elements(x, y);
  for_each_place(y.shape(), [&](const Extents& at) {
    const std::int64_t column_minus_row = at[at.size() - 1] - at[at.size() - 2];
    if (which == Triangle::lower ? column_minus_row <= diagonal : column_minus_row >= diagonal) return;
    std::int64_t offset = y.layout.offset;
    for (std::size_t i = 0; i < at.size(); ++i) offset += at[i] * y.layout.strides[i];
    std::memset(y.at(offset), 0, ir::size_of(y.dtype));
  });
  return {};
}

template <Triangle which>
ir::Scalar triangle_element(const CallInfo& call, const Place& at, std::span<const ir::Scalar> in) {
  const f::Scalar diagonal = diagonal_of(call);
  return f::select(which == Triangle::lower ? across(at) <= diagonal : across(at) >= diagonal, in[0], 0.0);
}

Values gradient_triangle(GradientCall& g) {
  return {g.b.call(g.info.card().name, {g.dy()}, {{"diagonal", g.info.integer("diagonal")}})};
}

constexpr Input full_inputs[] = {{"value", "T", InputKind::scalar, 0}};
constexpr Input arange_inputs[] = {{"start", "T", InputKind::scalar, 0}, {"step", "T", InputKind::scalar, 1}};
constexpr AttributeSpec full_attributes[] = {{"shape", AttributeKind::shape, true}};
constexpr AttributeSpec arange_attributes[] = {{"count", AttributeKind::size, true}};
constexpr AttributeSpec eye_attributes[] = {
    {"shape", AttributeKind::shape, true},
    {"diagonal", AttributeKind::integer},
    {"dtype", AttributeKind::dtype, false, static_cast<std::int64_t>(Dtype::f32)}};
constexpr AttributeSpec triangle_attributes[] = {{"diagonal", AttributeKind::integer}};

constexpr Card create_family[] = {
    {.name = "arange",
     .summary = "start + i * step for i below `count`, rounded once; integers wrap",
     .inputs = arange_inputs,
     .attributes = arange_attributes,
     .T = number_dtypes,
     .traits = {.indexed = true},
     .spellings = "Range",
     .oracle = "torch:arange",
     .infer = infer_arange,
     .reference = run_arange,
     .no_gradient = "`start` and `step` are settings",
     .indexed = arange_element},
    {.name = "eye",
     .summary = "1 where column - row is `diagonal`, else 0",
     .attributes = eye_attributes,
     .T = all_dtypes,
     .traits = {.indexed = true},
     .oracle = "numpy:eye",
     .infer = infer_eye,
     .reference = run_eye,
     .no_gradient = "there are no inputs",
     .indexed = eye_element},
    {.name = "full",
     .summary = "every element is `value`",
     .inputs = full_inputs,
     .attributes = full_attributes,
     .T = all_dtypes,
     .traits = {.indexed = true},
     .oracle = "numpy:full",
     .infer = infer_full,
     .reference = run_full,
     .no_gradient = "`value` is a setting",
     .indexed = full_element},
    {.name = "tril",
     .summary = "matrices with 0 above a diagonal: what has column - row at most `diagonal` stays",
     .inputs = input_x,
     .attributes = triangle_attributes,
     .T = all_dtypes,
     .traits = {.indexed = true},
     .oracle = "torch:tril",
     .infer = infer_triangle,
     .reference = run_triangle<Triangle::lower>,
     .gradient = gradient_triangle,
     .indexed = triangle_element<Triangle::lower>},
    {.name = "triu",
     .summary = "matrices with 0 below a diagonal: what has column - row at least `diagonal` stays",
     .inputs = input_x,
     .attributes = triangle_attributes,
     .T = all_dtypes,
     .traits = {.indexed = true},
     .oracle = "torch:triu",
     .infer = infer_triangle,
     .reference = run_triangle<Triangle::upper>,
     .gradient = gradient_triangle,
     .indexed = triangle_element<Triangle::upper>},
};

}  // namespace

std::span<const Card> tessera::op::create_cards() { return create_family; }
