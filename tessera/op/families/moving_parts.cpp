// Parts of a tensor at positions that are values: slice_at, update_slice_at.
//
// They are to slice and update_slice what XLA's dynamic_slice and dynamic_update_slice are: the sizes are
// attributes, the positions are integers of rank 0, one for each axis of `axes`, or for the first axes if
// that is left out. A negative position counts from the end, then the part is brought inside its axis.
// `steps` may be left out, then all are 1.
#include <algorithm>
#include <cstring>

#include "tessera/base/checked.h"
#include "tessera/op/families/make.h"
#include "tessera/op/families/parts.h"

using namespace tessera;
using namespace tessera::op;

namespace {

bool is_update(const CallInfo& call) { return call.card().name == "update_slice_at"; }

/// How many indices of an axis the part at a position has.
Dim count_of(const CallInfo& call, std::size_t position, std::size_t axis) {
  return is_update(call) ? call.input(1).shape[axis] : call.shape("sizes")[position];
}

/// The distance from the first index to the last.
std::optional<Dim> reach_of(const Dim& count, std::int64_t step) {
  const std::int64_t stride = std::abs(step);
  if (!count.is_constant()) return max(0, (count - 1) * stride);
  const auto reach = checked_mul(std::max<std::int64_t>(count.value() - 1, 0), stride);
  return reach ? std::optional<Dim>(*reach) : std::nullopt;
}

Result<MovingPart> part_at(const CallInfo& call, std::size_t axis, const Dim& count, std::int64_t step) {
  const Dim& size = call.input(0).shape[axis];
  const std::optional<Dim> reach = reach_of(count, step);
  const bool is_known = size.is_constant() && count.is_constant();
  if (count.is_constant() && count.value() < 0)
    return call.error("the part of axis ", axis, " has the negative size ", count);
  if (!reach || (is_known && count.value() > 0 && reach->value() >= size.value()))
    return call.error("a part of size ", count, " in steps of ", step, " does not fit into axis ", axis,
                      " of 'x', which has size ", size);
  const Dim last = max(0, size - 1);
  return step > 0 ? MovingPart{axis, step, count, 0, max(0, last - *reach)}
                  : MovingPart{axis, step, count, min(*reach, last), last};
}

Result<ValueTypes> infer_slice_at(const CallInfo& call) {
  ValueType out = call.input(0);
  const Shape& sizes = call.shape("sizes");
  if (sizes.size() != call.inputs().size() - first_position(call))
    return call.error("'sizes' has ", sizes.size(), " entries, there are ",
                      call.inputs().size() - first_position(call), " positions");
  for (const MovingPart& part : TESSERA_TRY(moving_parts(call))) out.shape[part.axis] = part.count;
  return ValueTypes{std::move(out)};
}

Result<ValueTypes> infer_update_slice_at(const CallInfo& call) {
  const Shape &shape = call.input(0).shape, &update = call.input(1).shape;
  if (shape.size() != update.size())
    return call.error("'x' has rank ", shape.size(), ", 'update' has rank ", update.size());
  std::vector<bool> is_listed(shape.size(), false);
  for (const MovingPart& part : TESSERA_TRY(moving_parts(call))) is_listed[part.axis] = true;
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (!is_listed[i]) TESSERA_TRY(call.unify(shape[i], update[i], cat("axis ", i, " of 'x' and 'update'")));
  return ValueTypes{call.input(0)};
}

Result<void> run_slice_at(const CallInfo& call, std::span<const Array> inputs,
                          std::span<const Array> results) {
  const Layout from = TESSERA_TRY(moving_part(call, inputs[0].layout, inputs));
  copy_elements({inputs[0].dtype, from, inputs[0].data}, results[0]);
  return {};
}

Result<void> run_update_slice_at(const CallInfo& call, std::span<const Array> inputs,
                                 std::span<const Array> results) {
  copy_elements(inputs[0], results[0]);
  const Layout to = TESSERA_TRY(moving_part(call, results[0].layout, inputs));
  copy_elements(inputs[1], {results[0].dtype, to, results[0].data});
  return {};
}

// ---- gradients

Values positions_of(const GradientCall& g) {
  Values out;
  for (std::size_t i = first_position(g.info); i < g.input_count(); ++i) out.push_back(g.x(i));
  return out;
}

Attributes axes_and_steps(const CallInfo& call) {
  return {{"steps", call.integers("steps")}, {"axes", call.integers("axes")}};
}

Value update_slice_at(const GradientCall& g, Value x, Value update) {
  Values inputs{x, update};
  for (const Value position : positions_of(g)) inputs.push_back(position);
  return g.b.call("update_slice_at", inputs, axes_and_steps(g.info));
}

Values gradient_slice_at(GradientCall& g) {
  Values out{update_slice_at(g, zeros_like(g.x()), reshape(g.dy(), g.y().shape()))};
  out.resize(g.input_count());
  return out;
}

/// What was written over no longer counts; the update counts where it was written.
Values gradient_update_slice_at(GradientCall& g) {
  Values taken{g.dy()};
  for (const Value position : positions_of(g)) taken.push_back(position);
  Attributes attributes = axes_and_steps(g.info);
  Shape sizes;
  for (const MovingPart& part : value_or_throw(moving_parts(g.info))) sizes.push_back(part.count);
  attributes.set("sizes", sizes);
  Values out{update_slice_at(g, g.dy(), zeros_like(g.x(1))),
             reshape(g.b.call("slice_at", taken, attributes), g.x(1).shape())};
  out.resize(g.input_count());
  return out;
}

constexpr Input moving_slice_inputs[] = {{"x"}, {"positions", "index", InputKind::variadic}};
constexpr Input moving_update_inputs[] = {{"x"}, {"update"}, {"positions", "index", InputKind::variadic}};
constexpr AttributeSpec moving_slice_attributes[] = {{"sizes", AttributeKind::shape, true},
                                                     {"steps", AttributeKind::integers},
                                                     {"axes", AttributeKind::integers}};
constexpr AttributeSpec moving_update_attributes[] = {{"steps", AttributeKind::integers},
                                                      {"axes", AttributeKind::integers}};

constexpr Card moving_part_family[] = {
    {.name = "slice_at",
     .summary = "the part of the given sizes at positions that are values; it is brought inside",
     .inputs = moving_slice_inputs,
     .attributes = moving_slice_attributes,
     .T = all_dtypes,
     .oracle = "none: it is jax.lax.dynamic_slice; compared with slice",
     .infer = infer_slice_at,
     .reference = run_slice_at,
     .gradient = gradient_slice_at},
    {.name = "update_slice_at",
     .summary = "x with the part at positions that are values replaced by `update`; it is brought inside",
     .inputs = moving_update_inputs,
     .attributes = moving_update_attributes,
     .T = all_dtypes,
     .traits = {.in_place = true},
     .oracle = "none: it is jax.lax.dynamic_update_slice; compared with update_slice",
     .infer = infer_update_slice_at,
     .reference = run_update_slice_at,
     .gradient = gradient_update_slice_at},
};

std::int64_t number_at(const Array& position) {
  const std::byte* const at = position.at(position.layout.offset);
  if (position.dtype == Dtype::i32) {
    std::int32_t out;
    std::memcpy(&out, at, sizeof out);
    return out;
  }
  std::int64_t out;
  std::memcpy(&out, at, sizeof out);
  return out;
}

}  // namespace

std::span<const Card> tessera::op::moving_part_cards() { return moving_part_family; }

std::int64_t tessera::op::MovingPart::start(std::int64_t position, std::int64_t size) const {
  const std::int64_t from_begin = position < 0 ? position + size : position;
  return std::clamp(from_begin, low.value(), high.value());
}

std::size_t tessera::op::first_position(const CallInfo& call) { return call.card().inputs.size() - 1; }

Result<std::vector<MovingPart>> tessera::op::moving_parts(const CallInfo& call) {
  const std::size_t first = first_position(call), count = call.inputs().size() - first;
  const auto axes = TESSERA_TRY(listed_axes(call, "positions", count));
  const auto steps = TESSERA_TRY(listed_steps(call, "positions", count));
  std::vector<MovingPart> out;
  for (std::size_t i = 0; i < count; ++i) {
    if (call.input(first + i).rank() != 0)
      return call.error(call.input_name(first + i), " must be a scalar, got ", call.input(first + i));
    out.push_back(TESSERA_TRY(part_at(call, axes[i], count_of(call, i, axes[i]), steps[i])));
  }
  return out;
}

Result<Layout> tessera::op::moving_part(const CallInfo& call, Layout x, std::span<const Array> inputs) {
  const auto parts = TESSERA_TRY(moving_parts(call));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const MovingPart& part = parts[i];
    const std::int64_t start = part.start(number_at(inputs[first_position(call) + i]), x.shape[part.axis]);
    x = part_of(std::move(x), part.axis, start, part.count.value(), part.step);
  }
  return x;
}
