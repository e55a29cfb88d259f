// Parts of a tensor and tensors made of parts: slice, update_slice, concat, split.
//
// Positions are those of NumPy: negative ones count from the end, a slice takes what is there. They are
// sizes, so they may be symbolic. 2^62 and beyond stands for the end of the axis, -2^62 and below for its
// begin: `stops = [9223372036854775807]` is "to the end", and with a negative step -9223372036854775808 is
// "to the first". `steps` may be left out, then all are 1. `axes` may be left out, then entry i is for axis
// i.
#include "tessera/op/families/parts.h"

#include <algorithm>

#include "tessera/base/checked.h"
#include "tessera/op/families/make.h"

using namespace tessera;
using namespace tessera::op;

namespace {

// ---- positions

constexpr std::int64_t beyond = std::int64_t{1} << 62;

/// A position counted from the begin. If the sign of a symbol is open, both cases are in the expression.
Dim from_begin(const Dim& position, const Dim& size) {
  if (position.is_constant()) return position.value() < 0 ? position + size : position;
  const Dim is_negative = max(0, min(1, Dim(0) - position));
  return position + size * is_negative;
}

/// The first and the last position that the indices of an axis can start from or stop before.
struct Ends {
  Dim low, high;
};
Ends ends_of(const Dim& size, std::int64_t step) {
  if (step > 0) return {0, size};
  return {-1, size - 1};
}

/// The position from the begin. Numbers are brought between the ends, so that nothing overflows; symbols are
/// not.
Dim place(const Dim& position, const Dim& size, const Ends& ends) {
  if (position.is_constant()) {
    if (position.value() >= beyond) return ends.high;
    if (position.value() <= -beyond) return ends.low;
  }
  const Dim out = from_begin(position, size);
  return out.is_constant() && size.is_constant() ? max(ends.low, min(ends.high, out)) : out;
}

AxisPart resolve(std::size_t axis, const Dim& size, const Dim& start, const Dim& stop, std::int64_t step) {
  const Ends ends = ends_of(size, step);
  const Dim first = place(start, size, ends), behind = place(stop, size, ends);
  // min(to, high) - max(from, low), written as one minimum, which simplifies better
  const Dim &from = step > 0 ? first : behind, &to = step > 0 ? behind : first;
  const Dim reach = min(min(to - from, ends.high - from), min(to - ends.low, ends.high - ends.low));
  const Dim distance = max(0, reach);
  return {axis, max(ends.low, min(ends.high, first)), step, floor_div(distance - 1, std::abs(step)) + 1};
}

// ---- slice

Result<std::vector<AxisPart>> slice_parts(const CallInfo& call) {
  const Shape &starts = call.shape("starts"), &stops = call.shape("stops");
  if (starts.size() != stops.size())
    return call.error("'starts' has ", starts.size(), " entries, 'stops' has ", stops.size());
  const auto axes = TESSERA_TRY(listed_axes(call, "starts", starts.size()));
  const auto steps = TESSERA_TRY(listed_steps(call, "starts", starts.size()));
  std::vector<AxisPart> out;
  for (std::size_t i = 0; i < axes.size(); ++i)
    out.push_back(resolve(axes[i], call.input(0).shape[axes[i]], starts[i], stops[i], steps[i]));
  return out;
}

Result<ValueTypes> infer_slice(const CallInfo& call) {
  ValueType out = call.input(0);
  for (const AxisPart& part : TESSERA_TRY(slice_parts(call))) out.shape[part.axis] = part.count;
  return ValueTypes{std::move(out)};
}

std::optional<Layout> view_slice(const CallInfo& call, const Layout& input) {
  Layout out = input;
  for (const AxisPart& part : value_or_throw(slice_parts(call)))
    out = part_of(out, part.axis, part.start.value(), part.count.value(), part.step);
  return out;
}

/// The attributes of update_slice that name the same elements.
Attributes attributes_of(std::span<const AxisPart> parts) {
  Shape starts;
  std::vector<std::int64_t> steps, axes;
  for (const AxisPart& part : parts) {
    starts.push_back(part.start);
    steps.push_back(part.step);
    axes.push_back(static_cast<std::int64_t>(part.axis));
  }
  return {{"starts", starts}, {"steps", steps}, {"axes", axes}};
}

std::vector<AxisRange> ranges_of(std::span<const AxisPart> parts) {
  std::vector<AxisRange> out;
  for (const AxisPart& part : parts) {
    const Dim last = part.start + (part.count - 1) * part.step;
    out.push_back(part.step > 0 ? AxisRange{part.axis, part.start, last + 1}
                                : AxisRange{part.axis, last, part.start + 1});
  }
  return out;
}

Values gradient_slice(GradientCall& g) {
  const auto parts = value_or_throw(slice_parts(g.info));
  return {g.b.part_gradient(g.x().type(), g.dy(), {attributes_of(parts), ranges_of(parts)})};
}

// ---- update_slice

/// Whether a part of known size and place is inside an axis of known size.
bool is_inside(const AxisPart& part, std::int64_t size) {
  if (part.count == Dim(0)) return true;
  const auto reach = checked_mul(part.count.value() - 1, part.step);
  const auto last = reach ? checked_add(part.start.value(), *reach) : std::nullopt;
  return part.start.value() >= 0 && part.start.value() < size && last && *last >= 0 && *last < size;
}

Result<ValueTypes> infer_update_slice(const CallInfo& call) {
  TESSERA_TRY(updated_axes(call));
  return ValueTypes{call.input(0)};
}

Result<void> run_update_slice(const CallInfo& call, std::span<const Array> inputs,
                              std::span<const Array> results) {
  copy_elements(inputs[0], results[0]);
  const Layout to = TESSERA_TRY(updated_part(call, results[0].layout));
  copy_elements(inputs[1], {results[0].dtype, to, results[0].data});
  return {};
}

/// What was written over no longer counts; the update counts where it was written.
Values gradient_update_slice(GradientCall& g) {
  const auto parts = value_or_throw(updated_axes(g.info));
  Attributes attributes = attributes_of(parts);
  const Value dx = g.b.call("update_slice", {g.dy(), zeros_like(g.x(1))}, attributes);
  Shape stops;
  for (const AxisPart& part : parts) {
    const Dim reach = max(0, (part.count - 1) * std::abs(part.step) + 1);
    // Going down, the position before the first would be one from the end: all are given from the end then.
    stops.push_back(part.step > 0 ? part.start + reach : part.start - reach - g.x().shape()[part.axis]);
  }
  attributes.set("stops", stops);
  return {dx, reshape(g.b.call("slice", {g.dy()}, attributes), g.x(1).shape())};
}

// ---- concat

Result<ValueTypes> infer_concat(const CallInfo& call) {
  ValueType out = call.input(0);
  const std::size_t axis = TESSERA_TRY(call.axis(call.integer("axis"), out.rank()));
  for (std::size_t k = 1; k < call.inputs().size(); ++k) {
    const Shape& shape = call.input(k).shape;
    if (shape.size() != out.rank())
      return call.error(call.input_name(0), " has rank ", out.rank(), ", ", call.input_name(k), " has rank ",
                        shape.size());
    for (std::size_t i = 0; i < shape.size(); ++i) {
      const std::string what = cat("axis ", i, " of ", call.input_name(0), " and ", call.input_name(k));
      out.shape[i] =
          i == axis ? out.shape[i] + shape[i] : TESSERA_TRY(call.unify(out.shape[i], shape[i], what));
    }
  }
  return ValueTypes{std::move(out)};
}

Result<void> run_concat(const CallInfo& call, std::span<const Array> inputs, std::span<const Array> results) {
  const std::size_t axis = TESSERA_TRY(call.axis(call.integer("axis"), inputs[0].rank()));
  std::int64_t begin = 0;
  for (const Array& input : inputs) {
    const std::int64_t size = input.shape()[axis];
    const Layout to = part_of(results[0].layout, axis, begin, size);
    copy_elements(input, {results[0].dtype, to, results[0].data});
    begin += size;
  }
  return {};
}

/// Each of `sizes` along `axis` as a slice.
Values pieces(Value x, std::int64_t axis, std::span<const Dim> sizes) {
  Values out;
  Dim begin = 0;
  for (const Dim& size : sizes) {
    out.push_back(slice(x, axis, begin, begin + size));
    begin = begin + size;
  }
  return out;
}

Values gradient_concat(GradientCall& g) {
  const std::int64_t axis = g.info.integer("axis");
  const std::size_t at = value_or_throw(g.info.axis(axis, g.y().rank()));
  std::vector<Dim> sizes;
  for (std::size_t k = 0; k < g.input_count(); ++k) sizes.push_back(g.x(k).shape()[at]);
  Values out = pieces(g.dy(), axis, sizes);
  for (std::size_t k = 0; k < out.size(); ++k) out[k] = reshape(out[k], g.x(k).shape());
  return out;
}

// ---- split

Result<ValueTypes> infer_split(const CallInfo& call) {
  const Shape& sizes = call.shape("sizes");
  const std::size_t axis = TESSERA_TRY(call.axis(call.integer("axis"), call.input(0).rank()));
  if (sizes.empty()) return call.error("'sizes' is empty");
  Dim total = 0;
  ValueTypes out(sizes.size(), call.input(0));
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    out[k].shape[axis] = sizes[k];
    total = total + sizes[k];
  }
  const Dim& size = call.input(0).shape[axis];
  if (!call.unify(total, size, "size"))
    return call.error("'sizes' ", sizes, " make ", total, ", axis ", axis, " of 'x' has size ", size);
  return out;
}

Result<void> run_split(const CallInfo& call, std::span<const Array> inputs, std::span<const Array> results) {
  const std::size_t axis = TESSERA_TRY(call.axis(call.integer("axis"), inputs[0].rank()));
  std::int64_t begin = 0;
  for (const Array& result : results) {
    const std::int64_t size = result.shape()[axis];
    copy_elements({inputs[0].dtype, part_of(inputs[0].layout, axis, begin, size), inputs[0].data}, result);
    begin += size;
  }
  return {};
}

Values gradient_split(GradientCall& g) {
  Values parts;
  for (std::size_t k = 0; k < g.info.shape("sizes").size(); ++k) parts.push_back(g.dy(k));
  return {reshape(g.b.call("concat", parts, {{"axis", g.info.integer("axis")}}), g.x().shape())};
}

Values decompose_split(Builder&, const CallInfo& call, std::span<const Value> inputs) {
  const Shape& sizes = call.shape("sizes");
  Values out = pieces(inputs[0], call.integer("axis"), sizes);
  const std::size_t axis = value_or_throw(call.axis(call.integer("axis"), call.input(0).rank()));
  for (std::size_t k = 0; k < out.size(); ++k) {
    Shape shape = call.input(0).shape;
    shape[axis] = sizes[k];
    out[k] = reshape(out[k], shape);
  }
  return out;
}

constexpr Input update_inputs[] = {{"x"}, {"update"}};
constexpr Input concat_inputs[] = {{"inputs", "T", InputKind::variadic}};
constexpr AttributeSpec slice_attributes[] = {{"starts", AttributeKind::shape, true},
                                              {"stops", AttributeKind::shape, true},
                                              {"steps", AttributeKind::integers},
                                              {"axes", AttributeKind::integers}};
constexpr AttributeSpec update_attributes[] = {{"starts", AttributeKind::shape, true},
                                               {"steps", AttributeKind::integers},
                                               {"axes", AttributeKind::integers}};
constexpr AttributeSpec concat_attributes[] = {{"axis", AttributeKind::integer}};
constexpr AttributeSpec split_attributes[] = {{"sizes", AttributeKind::shape, true},
                                              {"axis", AttributeKind::integer}};
constexpr std::string_view split_results[] = {"parts[]"};

constexpr Card part_family[] = {
    {.name = "concat",
     .summary = "joined along an axis",
     .inputs = concat_inputs,
     .attributes = concat_attributes,
     .T = all_dtypes,
     .onnx = {"Concat"},
     .spellings = "cat concatenate",
     .oracle = "torch:cat",
     .infer = infer_concat,
     .reference = run_concat,
     .gradient = gradient_concat},
    {.name = "slice",
     .summary =
         "x[start:stop:step] along axes; negative positions count from the end, 2^62 and beyond is the end",
     .inputs = input_x,
     .attributes = slice_attributes,
     .T = all_dtypes,
     .traits = {.view = true},
     .spellings = "Slice narrow",
     .oracle = "numpy:ndarray.__getitem__",
     .infer = infer_slice,
     .gradient = gradient_slice,
     .view = view_slice},
    {.name = "split",
     .summary = "parts of the given sizes along an axis",
     .inputs = input_x,
     .attributes = split_attributes,
     .results = split_results,
     .T = all_dtypes,
     .traits = {.composite = true},
     .spellings = "Split",
     .oracle = "torch:split",
     .infer = infer_split,
     .reference = run_split,
     .gradient = gradient_split,
     .decompose = decompose_split},
    {.name = "update_slice",
     .summary = "x with x[start::step] along axes replaced by `update`, which must be inside",
     .inputs = update_inputs,
     .attributes = update_attributes,
     .T = all_dtypes,
     .traits = {.in_place = true},
     .oracle = "numpy:ndarray.__setitem__",
     .infer = infer_update_slice,
     .reference = run_update_slice,
     .gradient = gradient_update_slice},
};

constexpr const Card& card_of_part(std::string_view name) {
  std::size_t i = 0;
  while (part_family[i].name != name) ++i;
  return part_family[i];
}

}  // namespace

std::span<const Card> tessera::op::part_cards() { return part_family; }

// ---- reading the attributes

Result<std::vector<std::size_t>> tessera::op::listed_axes(const CallInfo& call, std::string_view list,
                                                          std::size_t entries) {
  const std::size_t rank = call.input(0).rank();
  const auto& given = call.integers("axes");
  if (given.empty() && entries > rank)
    return call.error("'", list, "' has ", entries, " entries, 'x' has rank ", rank);
  if (!given.empty() && given.size() != entries)
    return call.error("'", list, "' has ", entries, " entries, 'axes' has ", given.size());
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < entries; ++i) {
    out.push_back(given.empty() ? i : TESSERA_TRY(call.axis(given[i], rank, "axis in 'axes'")));
    if (std::count(out.begin(), out.end(), out.back()) > 1)
      return call.error("axis ", out.back(), " is given twice in 'axes'");
  }
  return out;
}

Result<std::vector<std::int64_t>> tessera::op::listed_steps(const CallInfo& call, std::string_view list,
                                                            std::size_t entries) {
  auto steps = call.integers("steps");
  if (steps.empty()) steps.assign(entries, 1);
  if (steps.size() != entries)
    return call.error("'", list, "' has ", entries, " entries, 'steps' has ", steps.size());
  for (std::int64_t& step : steps) {
    if (step == 0) return call.error("'steps' [", join(steps, ", "), "] has a 0");
    // The one step that has no negative; its neighbour leads out of every axis as well.
    step = std::max(step, -std::numeric_limits<std::int64_t>::max());
  }
  return steps;
}

Result<std::vector<AxisPart>> tessera::op::updated_axes(const CallInfo& call) {
  const Shape &shape = call.input(0).shape, &update = call.input(1).shape, &starts = call.shape("starts");
  if (shape.size() != update.size())
    return call.error("'x' has rank ", shape.size(), ", 'update' has rank ", update.size());
  const auto axes = TESSERA_TRY(listed_axes(call, "starts", starts.size()));
  const auto steps = TESSERA_TRY(listed_steps(call, "starts", starts.size()));
  std::vector<AxisPart> out;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const Dim& size = shape[axes[i]];
    const AxisPart part{axes[i], from_begin(starts[i], size), steps[i], update[axes[i]]};
    if (size.is_constant() && part.start.is_constant() && part.count.is_constant() &&
        !is_inside(part, size.value()))
      return call.error("'update' of size ", part.count, " from ", starts[i], " in steps of ", part.step,
                        " is not inside axis ", part.axis, " of 'x', which has size ", size);
    out.push_back(part);
  }
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (std::find(axes.begin(), axes.end(), i) == axes.end())
      TESSERA_TRY(call.unify(shape[i], update[i], cat("axis ", i, " of 'x' and 'update'")));
  return out;
}

Result<Layout> tessera::op::updated_part(const CallInfo& call, Layout x) {
  for (const AxisPart& part : TESSERA_TRY(updated_axes(call)))
    x = part_of(std::move(x), part.axis, part.start.value(), part.count.value(), part.step);
  return x;
}

// ---- one form of positions

PartForm tessera::op::part_form(const Card& card) {
  using Kind = PartForm::Kind;
  constexpr const Card& slice = card_of_part("slice");
  constexpr const Card& update = card_of_part("update_slice");
  if (&card == &slice) return {Kind::slice, "slice_at"};
  if (&card == &update) return {Kind::update, "update_slice_at"};
  return {};
}

void tessera::op::find_starts(const Attributes& call, std::span<const std::int64_t> x,
                              std::span<const std::int64_t> part, std::int64_t* out) {
  const Shape& starts = *call.get<Shape>("starts");
  const auto& axes = *call.get<std::vector<std::int64_t>>("axes");
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::int64_t given = axes.empty() ? static_cast<std::int64_t>(i) : axes[i];
    const auto axis =
        static_cast<std::size_t>(given < 0 ? given + static_cast<std::int64_t>(x.size()) : given);
    const std::int64_t start = starts[i].value();
    out[i] = part[axis] == 0 ? 0 : start < 0 ? std::max(start, -x[axis]) : std::min(start, x[axis] - 1);
  }
}

Attributes tessera::op::slice_from(const Attributes& call, const Shape& starts, const Shape& counts) {
  auto steps = *call.get<std::vector<std::int64_t>>("steps");
  steps.resize(starts.size(), 1);
  Shape stops;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    // Without a stride there is one element at most.
    const std::int64_t step = counts[i] == Dim(1) ? (steps[i] > 0 ? 1 : -1) : steps[i];
    const Dim reach = (counts[i] - 1) * step + (step > 0 ? 1 : -1);
    const Dim stop = starts[i] + reach;
    const bool is_from_end = starts[i].is_constant() && starts[i].value() < 0;
    // Up to the last element from the end, and down to the first, are not what their numbers would say.
    if (step > 0 && is_from_end && stop == Dim(0))
      stops.push_back(beyond);
    else if (step < 0 && !is_from_end && stop == Dim(-1))
      stops.push_back(-beyond);
    else
      stops.push_back(counts[i] == Dim(0) ? starts[i] : stop);
  }
  return {{"starts", starts},
          {"stops", stops},
          {"steps", steps},
          {"axes", *call.get<std::vector<std::int64_t>>("axes")}};
}
