// Writing at indices: x with elements or parts replaced by updates, or combined with them. Where an index
// appears twice, updates follow each other in the order of the indices: for `none` the last one stays.
#include <algorithm>

#include "tessera/op/families/indices.h"
#include "tessera/op/families/make.h"

using namespace tessera;
using namespace tessera::op;

namespace {

// ---- reductions

enum class Reduction : std::uint8_t { none, add, mul, max, min };

Result<Reduction> reduction_of(const CallInfo& call) {
  static constexpr std::string_view names[] = {"none", "add", "mul", "max", "min"};
  const std::string& given = call.text("reduction");
  const auto at = std::find(std::begin(names), std::end(names), given);
  if (at == std::end(names))
    return call.error("'reduction' is ", quote(given), ", expected one of ", join(names, " "));
  return static_cast<Reduction>(at - std::begin(names));
}

template <class W>
W combined(Reduction reduction, const W& a, const W& b) {
  switch (reduction) {
    case Reduction::add:
      return a + b;
    case Reduction::mul:
      return a * b;
    case Reduction::max:
      return formula::maximum(a, b);
    case Reduction::min:
      return formula::minimum(a, b);
    case Reduction::none:
      break;
  }
  return b;
}

/// Where the updates go: `update(u, to)` is called with offsets in updates and result, in order.
template <class ForEach>
Result<void> run_scatter(const CallInfo& call, std::span<const Array> inputs, const Array& result,
                         ForEach for_each_update) {
  const Reduction reduction = TESSERA_TRY(reduction_of(call));
  const Array &x = inputs[0], &updates = inputs[2];
  if (reduction == Reduction::none) {
    copy_elements(x, result);
    for_each_update([&](std::int64_t from, std::int64_t to) { copy_element(updates, from, result, to); });
    return {};
  }
  // Several updates of one element are combined in the wide type and rounded once.
  return visit_wide(x.dtype, [&]<class W>(W*) -> Result<void> {
    std::vector<W> wide(static_cast<std::size_t>(x.size()));
    const auto load = loader<W>(x.dtype);
    std::size_t i = 0;
    for_each_offset<1>(x.shape(), {&x.layout},
                       [&](const auto& at) { load(x.data, at[0], 1, 1, &wide[i++]); });
    for_each_update([&](std::int64_t from, std::int64_t to) {
      W update{};
      load(updates.data, from, 1, 1, &update);
      W& element = wide[static_cast<std::size_t>(to - result.layout.offset)];
      element = combined(reduction, element, update);
    });
    storer<W>(result.dtype)(result.data, result.layout.offset, 1, wide.size(), wide.data());
    return {};
  });
}

// ---- scatter_elements

Result<ValueTypes> infer_scatter_elements(const CallInfo& call) {
  TESSERA_TRY(reduction_of(call));
  TESSERA_TRY(check_element_indices(call));
  const Shape &indices = call.input(1).shape, &updates = call.input(2).shape;
  if (indices.size() != updates.size())
    return call.error("'indices' has rank ", indices.size(), ", 'updates' has rank ", updates.size());
  for (std::size_t i = 0; i < indices.size(); ++i)
    TESSERA_TRY(call.unify(indices[i], updates[i], cat("axis ", i, " of 'indices' and 'updates'")));
  return ValueTypes{call.input(0)};
}

Result<void> run_scatter_elements(const CallInfo& call, std::span<const Array> inputs,
                                  std::span<const Array> results) {
  const Array &x = inputs[0], &updates = inputs[2], &y = results[0];
  const std::size_t axis = TESSERA_TRY(call.axis(call.integer("axis"), x.rank()));
  const IndexedAxis about{axis, x.shape()[axis]};
  const auto indices = TESSERA_TRY(resolve_indices(call, inputs[1], {&about, 1}));
  Layout to = y.layout;
  const std::int64_t stride = std::exchange(to.strides[axis], 0);
  return run_scatter(call, inputs, y, [&](const auto& update) {
    std::size_t i = 0;
    for_each_offset<2>(updates.shape(), {&updates.layout, &to},
                       [&](const auto& at) { update(at[0], at[1] + indices[i++] * stride); });
  });
}

// ---- scatter_nd

Result<ValueTypes> infer_scatter_nd(const CallInfo& call) {
  TESSERA_TRY(reduction_of(call));
  const IndexRows rows = TESSERA_TRY(index_rows(call, 0));
  Shape expected = rows.rows;
  for (const Dim& dim : rows.part) expected.push_back(dim);
  const Shape& updates = call.input(2).shape;
  if (updates.size() != expected.size())
    return call.error("'updates' has shape ", updates, ", expected ", expected);
  for (std::size_t i = 0; i < updates.size(); ++i)
    if (!call.unify(updates[i], expected[i], "size"))
      return call.error("'updates' has shape ", updates, ", expected ", expected);
  return ValueTypes{call.input(0)};
}

Result<void> run_scatter_nd(const CallInfo& call, std::span<const Array> inputs,
                            std::span<const Array> results) {
  const Array &x = inputs[0], &updates = inputs[2], &y = results[0];
  const IndexRows rows = TESSERA_TRY(index_rows(call, 0));
  std::vector<IndexedAxis> about;
  for (std::size_t i = 0; i < rows.depth; ++i) about.push_back({i, x.shape()[i]});
  const auto indices = TESSERA_TRY(resolve_indices(call, inputs[1], about));
  const Extents shape = extents_of(rows.rows), part = extents_of(rows.part);
  const auto strides_from = [](const Layout& layout, std::size_t axis) {
    return Extents(layout.strides.begin() + axis, layout.strides.end());
  };
  Layout from{part, strides_from(updates.layout, shape.size()), 0};
  Layout to{part, strides_from(y.layout, rows.depth), 0};
  return run_scatter(call, inputs, y, [&](const auto& update) {
    std::size_t row = 0;
    for_each_place(shape, [&](const Extents& at) {
      from.offset = updates.layout.offset;
      for (std::size_t i = 0; i < at.size(); ++i) from.offset += at[i] * updates.layout.strides[i];
      to.offset = y.layout.offset;
      for (std::size_t i = 0; i < rows.depth; ++i)
        to.offset += indices[row * rows.depth + i] * y.layout.strides[i];
      for_each_offset<2>(part, {&from, &to}, [&](const auto& offsets) { update(offsets[0], offsets[1]); });
      ++row;
    });
  });
}

// ---- gradients

/// The places a scatter writes to, for its gradient: scatter and its inverse with the same indices.
class Places {
 public:
  explicit Places(GradientCall& g) : g_(g) {
    if (g.info.has("axis")) axis_.set("axis", g.info.integer("axis"));
  }

  [[nodiscard]] Value scatter(Value x, Value updates, std::string reduction) const {
    Attributes attributes = axis_;
    attributes.set("reduction", std::move(reduction));
    return g_.b.call(g_.info.card().name, {x, g_.x(1), updates}, attributes);
  }
  /// What stands at the places, one element per update.
  [[nodiscard]] Value gather(Value x) const {
    return g_.b.call(axis_.empty() ? "gather_nd" : "gather_elements", {x, g_.x(1)}, axis_);
  }

 private:
  GradientCall& g_;
  Attributes axis_;
};

/// Only the last update of an element counts. Which one that is tells a scatter of their numbers.
Values gradient_none(GradientCall& g, const Places& places) {
  const Value updates = g.x(2);
  const Value numbers = reshape(range(g.b, 0, ir::product(updates.shape())), updates.shape());
  const Value none = full(g.b, 0, {Dtype::i64, g.x().shape()});
  const Value last = places.gather(places.scatter(none, numbers, "none"));
  const Value dx = places.scatter(g.dy(), zeros_like(updates), "none");
  return {dx, Value(), where(g.b.call("eq", {last, numbers}), places.gather(g.dy()), zeros_like(updates))};
}

/// The product of all others: y / update where no other factor is 0. The updates that are 0 are counted and
/// replaced by 1, so that one alone finds the product of the others too.
Values gradient_mul(GradientCall& g, const Places& places) {
  const Value x = g.x(), updates = g.x(2);
  const Value zero = g.b.constant(0, x.dtype()), one = g.b.constant(1, x.dtype());
  const Value is_zero = g.b.call("eq", {updates, zero});
  const Value factors = where(is_zero, one, updates), zeros = cast(is_zero, x.dtype());
  const Value counts = places.gather(places.scatter(zeros_like(x), zeros, "add"));
  const Value others = places.gather(g.dy() * places.scatter(x, factors, "mul")) / factors;
  const Value dx = g.dy() * places.scatter(full(g.b, 1, x.type()), updates, "mul");
  return {dx, Value(), where(g.b.call("eq", {counts, zeros}), others, zeros_like(updates))};
}

/// The extreme may be the element itself and some updates: they share in equal parts.
Values gradient_extreme(GradientCall& g, const Places& places) {
  const Dtype dtype = g.x().dtype();
  const Value own = cast(g.b.call("eq", {g.x(), g.y()}), dtype);
  const Value updated = cast(g.b.call("eq", {g.x(2), places.gather(g.y())}), dtype);
  const Value share = g.dy() / places.scatter(own, updated, "add");
  return {own * share, Value(), updated * places.gather(share)};
}

Values gradient_scatter(GradientCall& g) {
  const Places places(g);
  switch (value_or_throw(reduction_of(g.info))) {
    case Reduction::none:
      return gradient_none(g, places);
    case Reduction::add:
      return {g.dy(), Value(), places.gather(g.dy())};
    case Reduction::mul:
      return gradient_mul(g, places);
    case Reduction::max:
    case Reduction::min:
      return gradient_extreme(g, places);
  }
  return {};
}

constexpr Input scatter_inputs[] = {{"x"}, {"indices", "index"}, {"updates"}};
constexpr AttributeSpec reduction_attribute[] = {
    {.name = "reduction", .kind = AttributeKind::text, .text = "none"}};
constexpr AttributeSpec element_attributes[] = {
    {"axis", AttributeKind::integer}, {.name = "reduction", .kind = AttributeKind::text, .text = "none"}};

constexpr Card scatter_family[] = {
    {.name = "scatter_elements",
     .summary =
         "x with each element that `indices` name along an axis replaced by, or combined with, its update",
     .inputs = scatter_inputs,
     .attributes = element_attributes,
     .T = all_dtypes,
     .traits = {.in_place = true},
     .onnx = {"ScatterElements"},
     .spellings = "Tensor.scatter aten::scatter torch.scatter",
     .oracle = "torch:scatter_reduce",
     .infer = infer_scatter_elements,
     .reference = run_scatter_elements,
     .gradient = gradient_scatter},
    {.name = "scatter_nd",
     .summary = "x with each part that a row of `indices` names replaced by, or combined with, its update",
     .inputs = scatter_inputs,
     .attributes = reduction_attribute,
     .T = all_dtypes,
     .traits = {.in_place = true},
     .onnx = {"ScatterND"},
     .oracle = "numpy:ndarray.__setitem__",
     .infer = infer_scatter_nd,
     .reference = run_scatter_nd,
     .gradient = gradient_scatter},
};

}  // namespace

std::span<const Card> tessera::op::scatter_cards() { return scatter_family; }
