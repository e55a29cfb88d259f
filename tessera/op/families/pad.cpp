// Padding. `before` and `after` have one size per axis, or none at all for no padding. A negative one crops;
// what is cropped is gone before anything is padded. Modes: `constant` (the input `value`), `edge` (the last
// element goes on), `reflect` (back and forth between the first and the last element, which are not
// repeated), `wrap` (from the other end).
#include <algorithm>

#include "tessera/base/checked.h"
#include "tessera/op/families/make.h"

using namespace tessera;
using namespace tessera::op;

namespace {

/// One axis: `kept` elements from `first` on, with this many before and after.
struct AxisPad {
  Dim first, kept, before, after, padded;

  [[nodiscard]] bool is_nothing() const {
    return first == Dim(0) && before == Dim(0) && after == Dim(0) && kept == padded;
  }
};

Result<AxisPad> axis_pad(const CallInfo& call, std::size_t axis, const Dim& before, const Dim& after) {
  const Dim& size = call.input(0).shape[axis];
  AxisPad out;
  out.first = max(0, Dim(0) - before);
  out.before = max(0, before);
  out.after = max(0, after);
  out.kept = size - out.first - max(0, Dim(0) - after);
  out.padded = size + before + after;
  if (out.kept.is_constant() && out.kept.value() < 0)
    return call.error("'before' ", before, " and 'after' ", after, " crop more than axis ", axis,
                      " of 'x' has, which is ", size);
  return out;
}

Result<std::vector<AxisPad>> pads_of(const CallInfo& call) {
  const std::size_t rank = call.input(0).rank();
  Shape before = call.shape("before"), after = call.shape("after");
  for (const auto& [name, list] : {std::pair("before", &before), std::pair("after", &after)}) {
    if (list->empty()) list->resize(rank, Dim(0));
    if (list->size() != rank)
      return call.error("'", name, "' has ", list->size(), " entries, 'x' has rank ", rank);
  }
  std::vector<AxisPad> out;
  for (std::size_t i = 0; i < rank; ++i) out.push_back(TESSERA_TRY(axis_pad(call, i, before[i], after[i])));
  return out;
}

Result<ValueTypes> infer_pad(const CallInfo& call) {
  const std::string& mode = call.text("mode");
  const auto pads = TESSERA_TRY(pads_of(call));
  if (mode != "constant" && mode != "edge" && mode != "reflect" && mode != "wrap")
    return call.error("'mode' is ", quote(mode),
                      ", expected \"constant\", \"edge\", \"reflect\" or \"wrap\"");
  ValueType out{call.input(0).dtype, {}};
  for (std::size_t i = 0; i < pads.size(); ++i) {
    if (mode != "constant" && pads[i].kept == Dim(0) && provably_at_least(pads[i].padded, 1))
      return call.error("axis ", i, " of 'x' has no elements to pad with in mode ", quote(mode));
    out.shape.push_back(pads[i].padded);
  }
  return ValueTypes{std::move(out)};
}

// ---- which element of `x` stands at an index of the result

/// For every index of one axis. REQUIRES numbers.
std::vector<std::int64_t> sources(const AxisPad& pad, const std::string& mode) {
  const std::int64_t kept = pad.kept.value();
  const std::int64_t period = std::max<std::int64_t>(2 * (kept - 1), 1);
  std::vector<std::int64_t> out(static_cast<std::size_t>(pad.padded.value()));
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::int64_t at = static_cast<std::int64_t>(i) - pad.before.value();
    if (mode == "edge") at = std::clamp<std::int64_t>(at, 0, kept - 1);
    if (mode == "wrap") at = tessera::floor_mod(at, kept);
    if (mode == "reflect") at = kept - 1 - std::abs(kept - 1 - tessera::floor_mod(at, period));
    out[i] = pad.first.value() + at;
  }
  return out;
}

/// The same as an i64 vector.
Value sources(Builder& b, const AxisPad& pad, const std::string& mode) {
  const Value last = b.extent(pad.kept - 1), zero = b.constant(0, Dtype::i64);
  Value at = range(b, Dim(0) - pad.before, pad.padded);
  if (mode == "edge") at = b.call("minimum", {b.call("maximum", {at, zero}), last});
  if (mode == "wrap") at = b.call("mod", {at, b.extent(pad.kept)});
  if (mode == "reflect") {
    const Value period = b.extent(max(1, 2 * (pad.kept - 1)));
    at = last - unary("abs", last - b.call("mod", {at, period}));
  }
  return at + b.extent(pad.first);
}

// ---- reference

void pad_constant(std::span<const AxisPad> pads, const Array& x, const Array& value, const Array& result) {
  fill_elements(result, value, value.layout.offset);
  Layout from = x.layout, to = result.layout;
  for (std::size_t i = 0; i < pads.size(); ++i) {
    from = part_of(from, i, pads[i].first.value(), pads[i].kept.value());
    to = part_of(to, i, pads[i].before.value(), pads[i].kept.value());
  }
  copy_elements({x.dtype, from, x.data}, {result.dtype, to, result.data});
}

Result<void> run_pad(const CallInfo& call, std::span<const Array> inputs, std::span<const Array> results) {
  const auto pads = TESSERA_TRY(pads_of(call));
  const std::string& mode = call.text("mode");
  const Array &x = inputs[0], &result = results[0];
  if (result.size() == 0) return {};
  if (mode == "constant") {
    pad_constant(pads, x, inputs[1], result);
    return {};
  }
  std::vector<std::vector<std::int64_t>> offsets;  // of each index of each axis
  for (std::size_t i = 0; i < pads.size(); ++i) {
    offsets.push_back(sources(pads[i], mode));
    for (std::int64_t& offset : offsets.back()) offset *= x.layout.strides[i];
  }
  std::int64_t to = 0;
  for_each_place(result.shape(), [&](const Extents& at) {
    std::int64_t from = x.layout.offset;
    for (std::size_t i = 0; i < at.size(); ++i) from += offsets[i][static_cast<std::size_t>(at[i])];
    copy_element(x, from, result, result.layout.offset + to++);
  });
  return {};
}

// ---- gradient and decomposition

/// Padding back: what was added is cropped, what was cropped is 0.
Value unpad_constant(GradientCall& g) {
  Shape before, after;
  for (const Dim& size : g.info.shape("before")) before.push_back(Dim(0) - size);
  for (const Dim& size : g.info.shape("after")) after.push_back(Dim(0) - size);
  return g.b.call("pad", {g.dy()}, {{"before", before}, {"after", after}});
}

Values gradient_pad(GradientCall& g) {
  const std::string& mode = g.info.text("mode");
  if (mode == "constant") return {reshape(unpad_constant(g), g.x().shape()), Value()};
  // Every element of the result adds its gradient to the element it came from, one axis after the other.
  const auto pads = value_or_throw(pads_of(g.info));
  Value dx = g.dy();
  for (std::size_t i = 0; i < pads.size(); ++i) {
    if (pads[i].is_nothing()) continue;
    Shape as_axis(dx.rank(), Dim(1)), shape = dx.shape();
    as_axis[i] = pads[i].padded;
    shape[i] = g.x().shape()[i];
    const Value indices = broadcast_to(reshape(sources(g.b, pads[i], mode), as_axis), dx.shape());
    dx = g.b.call("scatter_elements", {full(g.b, 0, {dx.dtype(), shape}), indices, dx},
                  {{"axis", static_cast<std::int64_t>(i)}, {"reduction", std::string("add")}});
  }
  return {dx, Value()};
}

Value decompose_constant(Builder& b, std::span<const AxisPad> pads, std::span<const Value> inputs) {
  Shape shape, kept, starts, firsts, stops;
  for (const AxisPad& pad : pads) {
    shape.push_back(pad.padded);
    kept.push_back(pad.kept);
    starts.push_back(pad.before);
    firsts.push_back(pad.first);
    stops.push_back(pad.first + pad.kept);
  }
  const Value part = kept == inputs[0].shape()
                         ? inputs[0]
                         : b.call("slice", {inputs[0]}, {{"starts", firsts}, {"stops", stops}});
  return b.call("update_slice", {b.call("full", {inputs[1]}, {{"shape", shape}}), part},
                {{"starts", starts}});
}

Values decompose_pad(Builder& b, const CallInfo& call, std::span<const Value> inputs) {
  const std::string& mode = call.text("mode");
  const auto pads = value_or_throw(pads_of(call));
  if (mode == "constant") return {decompose_constant(b, pads, inputs)};
  Value x = inputs[0];
  for (std::size_t i = 0; i < pads.size(); ++i)
    if (!pads[i].is_nothing())
      x = b.call("gather", {x, sources(b, pads[i], mode)}, {{"axis", static_cast<std::int64_t>(i)}});
  return {x};
}

constexpr Input pad_inputs[] = {{"x"}, {"value", "T", InputKind::scalar, 0}};
constexpr AttributeSpec pad_attributes[] = {
    {"before", AttributeKind::shape},
    {"after", AttributeKind::shape},
    {.name = "mode", .kind = AttributeKind::text, .text = "constant"}};

constexpr Card pad_family[] = {
    {.name = "pad",
     .summary = "more elements before and after each axis, or fewer where negative; mode constant, edge, "
                "reflect or wrap",
     .inputs = pad_inputs,
     .attributes = pad_attributes,
     .T = all_dtypes,
     .traits = {.composite = true},
     .spellings = "Pad constant_pad_nd",
     .oracle = "numpy:pad",
     .infer = infer_pad,
     .reference = run_pad,
     .gradient = gradient_pad,
     .decompose = decompose_pad},
};

}  // namespace

std::span<const Card> tessera::op::pad_cards() { return pad_family; }
