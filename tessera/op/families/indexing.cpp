// Elements chosen by indices: gathers, one_hot, and the indices of what is not zero.
#include <algorithm>

#include "tessera/op/families/indices.h"
#include "tessera/op/families/make.h"

using namespace tessera;
using namespace tessera::op;

namespace {

// ---- gather

Result<ValueTypes> infer_gather(const CallInfo& call) {
  const Shape &x = call.input(0).shape, &indices = call.input(1).shape;
  const std::size_t axis = TESSERA_TRY(call.axis(call.integer("axis"), x.size()));
  ValueType out{call.input(0).dtype, Shape(x.begin(), x.begin() + axis)};
  for (const Dim& dim : indices) out.shape.push_back(dim);
  for (std::size_t i = axis + 1; i < x.size(); ++i) out.shape.push_back(x[i]);
  return ValueTypes{std::move(out)};
}

/// Slices of `count` elements of `Element`, which has their size, from a row-major array [outer, size,
/// count].
template <class Element>
void gather_slices(const Element* from, std::int64_t size, std::int64_t count, std::int64_t outer,
                   std::span<const std::int64_t> indices, Element* to) {
  for (std::int64_t o = 0; o < outer; ++o, from += size * count) {
    if (count == 1) {
      for (const std::int64_t index : indices) *to++ = from[index];
      continue;
    }
    for (const std::int64_t index : indices) to = std::copy_n(from + index * count, count, to);
  }
}

void gather_dense(const Array& x, std::size_t axis, std::span<const std::int64_t> indices, const Array& y) {
  std::int64_t outer = 1, count = 1;
  for (std::size_t i = 0; i < axis; ++i) outer *= x.shape()[i];
  for (std::size_t i = axis + 1; i < x.rank(); ++i) count *= x.shape()[i];
  const auto with = [&]<class Element>(Element) {
    gather_slices(reinterpret_cast<const Element*>(x.at(x.layout.offset)), x.shape()[axis], count, outer,
                  indices, reinterpret_cast<Element*>(y.at(y.layout.offset)));
  };
  switch (ir::size_of(x.dtype)) {
    case 1:
      return with(std::uint8_t{});
    case 2:
      return with(std::uint16_t{});
    case 4:
      return with(std::uint32_t{});
    default:
      return with(std::uint64_t{});
  }
}

Result<void> run_gather(const CallInfo& call, std::span<const Array> inputs, std::span<const Array> results) {
  const Array &x = inputs[0], &y = results[0];
  const std::size_t axis = TESSERA_TRY(call.axis(call.integer("axis"), x.rank()));
  const IndexedAxis about{axis, x.shape()[axis]};
  const auto indices = TESSERA_TRY(resolve_indices(call, inputs[1], {&about, 1}));
  if (y.size() == 0) return {};
  if (x.layout.is_contiguous()) {
    gather_dense(x, axis, indices, y);
    return {};
  }
  // The result with all axes of the indices as one.
  Extents shape = x.shape();
  shape[axis] = static_cast<std::int64_t>(indices.size());
  const Layout joined = contiguous(shape);
  for (std::size_t i = 0; i < indices.size(); ++i)
    copy_elements({x.dtype, part_of(x.layout, axis, indices[i], 1), x.data},
                  {y.dtype, part_of(joined, axis, static_cast<std::int64_t>(i), 1), y.data});
  return {};
}

/// Every element adds its gradient to where it came from.
Values gradient_gather(GradientCall& g) {
  const Shape& shape = g.x().shape();
  const std::size_t axis = value_or_throw(g.info.axis(g.info.integer("axis"), shape.size()));
  Shape joined = shape, as_axis(shape.size(), Dim(1));
  joined[axis] = as_axis[axis] = ir::product(g.x(1).shape());
  const Value indices = broadcast_to(reshape(g.x(1), as_axis), joined);
  return {g.b.call("scatter_elements", {zeros_like(g.x()), indices, reshape(g.dy(), joined)},
                   {{"axis", g.info.integer("axis")}, {"reduction", std::string("add")}}),
          Value()};
}

// ---- gather_elements

Result<ValueTypes> infer_gather_elements(const CallInfo& call) {
  TESSERA_TRY(check_element_indices(call));
  return ValueTypes{{call.input(0).dtype, call.input(1).shape}};
}

Result<void> run_gather_elements(const CallInfo& call, std::span<const Array> inputs,
                                 std::span<const Array> results) {
  const Array &x = inputs[0], &y = results[0];
  const std::size_t axis = TESSERA_TRY(call.axis(call.integer("axis"), x.rank()));
  const IndexedAxis about{axis, x.shape()[axis]};
  const auto indices = TESSERA_TRY(resolve_indices(call, inputs[1], {&about, 1}));
  Layout from = x.layout;
  const std::int64_t stride = std::exchange(from.strides[axis], 0);
  std::size_t i = 0;
  for_each_offset<2>(y.shape(), {&from, &y.layout},
                     [&](const auto& at) { copy_element(x, at[0] + indices[i++] * stride, y, at[1]); });
  return {};
}

Values gradient_gather_elements(GradientCall& g) {
  return {g.b.call("scatter_elements", {zeros_like(g.x()), g.x(1), g.dy()},
                   {{"axis", g.info.integer("axis")}, {"reduction", std::string("add")}}),
          Value()};
}

// ---- gather_nd

Result<std::size_t> batch_axes_of(const CallInfo& call) {
  const Shape &x = call.input(0).shape, &indices = call.input(1).shape;
  const std::int64_t given = call.integer("batch_dims");
  const auto limit = static_cast<std::int64_t>(std::min(x.size(), indices.size()));
  if (given < 0 || (given > 0 && given >= limit))
    return call.error("'batch_dims' is ", given, ", but 'x' has rank ", x.size(), " and 'indices' has rank ",
                      indices.size());
  for (std::size_t i = 0; i < static_cast<std::size_t>(given); ++i)
    TESSERA_TRY(call.unify(x[i], indices[i], cat("axis ", i, " of 'x' and 'indices'")));
  return static_cast<std::size_t>(given);
}

Result<ValueTypes> infer_gather_nd(const CallInfo& call) {
  const IndexRows rows = TESSERA_TRY(index_rows(call, TESSERA_TRY(batch_axes_of(call))));
  ValueType out{call.input(0).dtype, rows.rows};
  for (const Dim& dim : rows.part) out.shape.push_back(dim);
  return ValueTypes{std::move(out)};
}

Result<void> run_gather_nd(const CallInfo& call, std::span<const Array> inputs,
                           std::span<const Array> results) {
  const Array &x = inputs[0], &y = results[0];
  const std::size_t batch = TESSERA_TRY(batch_axes_of(call));
  const IndexRows rows = TESSERA_TRY(index_rows(call, batch));
  std::vector<IndexedAxis> about;
  for (std::size_t i = 0; i < rows.depth; ++i) about.push_back({batch + i, x.shape()[batch + i]});
  const auto indices = TESSERA_TRY(resolve_indices(call, inputs[1], about));
  if (y.size() == 0) return {};
  const std::size_t part_axis = batch + rows.depth;
  const Extents part = extents_of(rows.part);
  Layout from{part, Extents(x.layout.strides.begin() + part_axis, x.layout.strides.end()), 0};
  Layout to = contiguous(part);
  std::size_t row = 0;
  for_each_place(extents_of(rows.rows), [&](const Extents& at) {
    from.offset = x.layout.offset;
    for (std::size_t i = 0; i < batch; ++i) from.offset += at[i] * x.layout.strides[i];
    for (std::size_t i = 0; i < rows.depth; ++i)
      from.offset += indices[row * rows.depth + i] * x.layout.strides[batch + i];
    to.offset = y.layout.offset + static_cast<std::int64_t>(row) * element_count(part);
    copy_elements({x.dtype, from, x.data}, {y.dtype, to, y.data});
    ++row;
  });
  return {};
}

/// The indices with the batch axes named in their rows as well, so that no batch axes are needed.
Value indices_with_batch(GradientCall& g) {
  const Value indices = g.x(1);
  const std::int64_t last = static_cast<std::int64_t>(indices.rank()) - 1;
  Shape column = indices.shape();
  column.back() = 1;
  Values columns;
  for (std::size_t i = 0; i < static_cast<std::size_t>(g.info.integer("batch_dims")); ++i) {
    Shape as_axis(column.size(), Dim(1));
    as_axis[i] = column[i];
    const Value positions = cast(range(g.b, 0, column[i]), indices.dtype());
    columns.push_back(broadcast_to(reshape(positions, as_axis), column));
  }
  columns.push_back(indices);
  return columns.size() == 1 ? indices : g.b.call("concat", columns, {{"axis", last}});
}

Values gradient_gather_nd(GradientCall& g) {
  return {g.b.call("scatter_nd", {zeros_like(g.x()), indices_with_batch(g), g.dy()},
                   {{"reduction", std::string("add")}}),
          Value()};
}

// ---- one_hot

Result<ValueTypes> infer_one_hot(const CallInfo& call) {
  ValueType out{call.input(1).dtype, call.input(0).shape};
  const std::size_t axis = TESSERA_TRY(call.axis(call.integer("axis"), out.rank() + 1));
  const Dim& depth = call.size("depth");
  if (depth.is_constant() && depth.value() < 0)
    return call.error("'depth' is ", depth, ", at least 0 is needed");
  out.shape.insert(out.shape.begin() + axis, depth);
  return ValueTypes{std::move(out)};
}

Result<void> run_one_hot(const CallInfo& call, std::span<const Array> inputs,
                         std::span<const Array> results) {
  const Array &on = inputs[1], &off = inputs[2], &y = results[0];
  const std::size_t axis = TESSERA_TRY(call.axis(call.integer("axis"), y.rank()));
  const IndexedAxis about{axis, y.shape()[axis]};
  const auto hot = TESSERA_TRY(resolve_indices(call, inputs[0], {&about, 1}));
  fill_elements(y, off, off.layout.offset);
  Layout to = y.layout;
  const std::int64_t stride = to.strides[axis];
  to.shape.erase(to.shape.begin() + axis);
  to.strides.erase(to.strides.begin() + axis);
  std::size_t i = 0;
  for_each_offset<1>(to.shape, {&to}, [&](const auto& at) {
    copy_element(on, on.layout.offset, y, at[0] + hot[i++] * stride);
  });
  return {};
}

// ---- nonzero

Result<ValueTypes> infer_nonzero(const CallInfo& call) {
  const Shape& shape = call.input(0).shape;
  return ValueTypes{{Dtype::i64, {ir::product(shape), static_cast<std::int64_t>(shape.size())}},
                    {Dtype::i64, {}}};
}

Result<void> run_nonzero(const CallInfo&, std::span<const Array> inputs, std::span<const Array> results) {
  const Array& x = inputs[0];
  auto* rows = reinterpret_cast<std::int64_t*>(results[0].data);
  std::fill_n(rows, results[0].size(), 0);
  std::int64_t count = 0;
  visit_wide(x.dtype, [&]<class W>(W*) {
    const auto load = loader<W>(x.dtype);
    for_each_place(x.shape(), [&](const Extents& at) {
      std::int64_t offset = x.layout.offset;
      for (std::size_t i = 0; i < at.size(); ++i) offset += at[i] * x.layout.strides[i];
      W value{};
      load(x.data, offset, 1, 1, &value);
      if (value == W(0)) return;
      rows = std::copy(at.begin(), at.end(), rows);
      ++count;
    });
  });
  *reinterpret_cast<std::int64_t*>(results[1].data) = count;
  return {};
}

constexpr Input gather_inputs[] = {{"x"}, {"indices", "index"}};
constexpr Input one_hot_inputs[] = {
    {"indices", "index"}, {"on", "T", InputKind::scalar, 1}, {"off", "T", InputKind::scalar, 0}};
constexpr AttributeSpec axis_attribute[] = {{"axis", AttributeKind::integer}};
constexpr AttributeSpec gather_nd_attributes[] = {{"batch_dims", AttributeKind::integer}};
constexpr AttributeSpec one_hot_attributes[] = {{"depth", AttributeKind::size, true},
                                                {"axis", AttributeKind::integer, false, -1}};
constexpr std::string_view nonzero_results[] = {"indices", "count"};

constexpr Card indexing_family[] = {
    {.name = "gather",
     .summary = "the parts along an axis that `indices` name; the axis becomes the axes of `indices`",
     .inputs = gather_inputs,
     .attributes = axis_attribute,
     .T = all_dtypes,
     .onnx = {"Gather"},
     .spellings = "index_select",
     .oracle = "numpy:take",
     .infer = infer_gather,
     .reference = run_gather,
     .gradient = gradient_gather},
    {.name = "gather_elements",
     .summary = "for each element of `indices` the element of x that differs in the index along an axis",
     .inputs = gather_inputs,
     .attributes = axis_attribute,
     .T = all_dtypes,
     .onnx = {"GatherElements"},
     .spellings = "Tensor.gather aten::gather torch.gather",
     .oracle = "torch:gather",
     .infer = infer_gather_elements,
     .reference = run_gather_elements,
     .gradient = gradient_gather_elements},
    {.name = "gather_nd",
     .summary = "the parts of x that the rows of `indices` name, behind `batch_dims` axes both have",
     .inputs = gather_inputs,
     .attributes = gather_nd_attributes,
     .T = all_dtypes,
     .onnx = {"GatherND"},
     .oracle = "numpy:ndarray.__getitem__",
     .infer = infer_gather_nd,
     .reference = run_gather_nd,
     .gradient = gradient_gather_nd},
    {.name = "nonzero",
     .summary = "the indices of all elements that are not 0, a row each, and how many there are; rows behind "
                "`count` are 0",
     .inputs = input_x,
     .results = nonzero_results,
     .T = all_dtypes,
     .traits = {.data_dependent = true},
     .spellings = "NonZero",
     .oracle = "numpy:argwhere",
     .infer = infer_nonzero,
     .reference = run_nonzero,
     .no_gradient = "the results are indices"},
    {.name = "one_hot",
     .summary = "a new axis of size `depth`: `on` at the index, `off` elsewhere",
     .inputs = one_hot_inputs,
     .attributes = one_hot_attributes,
     .T = all_dtypes,
     .spellings = "OneHot",
     .oracle = "torch:nn.functional.one_hot",
     .infer = infer_one_hot,
     .reference = run_one_hot,
     .no_gradient = "`on` and `off` are settings"},
};

}  // namespace

std::span<const Card> tessera::op::indexing_cards() { return indexing_family; }
