// Orders along an axis: sort, and the first few of that order.
//
// Equal elements stay in the order they had. NaN counts as greater than every number, so that it comes last,
// or first where the greatest come first; -0 and 0 are equal.
#include <algorithm>
#include <numeric>

#include "tessera/op/families/make.h"

using namespace tessera;
using namespace tessera::op;

namespace {

enum class Order : std::uint8_t { ascending, descending };

template <class W>
bool is_less(const W& a, const W& b) {
  if constexpr (std::is_same_v<W, double>)
    if (std::isnan(b)) return !std::isnan(a);
  return a < b;
}

/// Calls `f(order, from, to)` for every row of x along `axis`: the indices of its elements in order, and the
/// offsets of its begin in the inputs and in the result.
template <class F>
void for_each_sorted_row(const Array& x, const Layout& result, std::size_t axis, Order order, F&& f) {
  Layout from = x.layout, to = result;
  const auto length = static_cast<std::size_t>(from.shape[axis]);
  const std::int64_t stride = from.strides[axis];
  from.shape[axis] = std::min<std::int64_t>(from.shape[axis], 1);
  std::vector<std::int64_t> indices(length);
  visit_wide(x.dtype, [&]<class W>(W*) {
    std::vector<W> row(length);
    for_each_offset<2>(from.shape, {&from, &to}, [&](const auto& at) {
      loader<W>(x.dtype)(x.data, at[0], stride, length, row.data());
      std::iota(indices.begin(), indices.end(), 0);
      std::stable_sort(indices.begin(), indices.end(), [&](std::int64_t a, std::int64_t b) {
        const W &first = row[static_cast<std::size_t>(a)], &second = row[static_cast<std::size_t>(b)];
        return order == Order::ascending ? is_less(first, second) : is_less(second, first);
      });
      f(std::span(indices), at[0], at[1]);
    });
  });
}

/// Writes the elements that `order` names, and the names, along the axis.
void write_row(std::span<const std::int64_t> order, const Array& x, std::int64_t from,
               std::span<const Array> results, std::int64_t to, std::size_t axis) {
  const Array &values = results[0], &indices = results[1];
  for (const std::int64_t index : order) {
    copy_element(x, from + index * x.layout.strides[axis], values, to);
    std::memcpy(indices.at(to), &index, sizeof index);
    to += values.layout.strides[axis];
  }
}

/// Where the elements of a sorted result came from, the gradient goes back to.
Values gradient_order(GradientCall& g) {
  return {g.b.call("scatter_elements", {zeros_like(g.x()), g.y(1), g.dy()},
                   {{"axis", g.info.integer("axis")}, {"reduction", std::string("add")}})};
}

// ---- sort

Result<ValueTypes> infer_sort(const CallInfo& call) {
  TESSERA_TRY(call.axis(call.integer("axis"), call.input(0).rank()));
  return ValueTypes{call.input(0), {Dtype::i64, call.input(0).shape}};
}

Result<void> run_sort(const CallInfo& call, std::span<const Array> inputs, std::span<const Array> results) {
  const std::size_t axis = TESSERA_TRY(call.axis(call.integer("axis"), inputs[0].rank()));
  const Order order = call.flag("descending") ? Order::descending : Order::ascending;
  for_each_sorted_row(inputs[0], results[0].layout, axis, order,
                      [&](std::span<const std::int64_t> indices, std::int64_t from, std::int64_t to) {
                        write_row(indices, inputs[0], from, results, to, axis);
                      });
  return {};
}

// ---- topk

Result<ValueTypes> infer_topk(const CallInfo& call) {
  ValueType out = call.input(0);
  const std::size_t axis = TESSERA_TRY(call.axis(call.integer("axis"), out.rank()));
  const Dim &k = call.size("k"), &size = out.shape[axis];
  if (k.is_constant() && k.value() < 0) return call.error("'k' is ", k, ", at least 0 is needed");
  if (provably_at_least(k, size + 1))
    return call.error("'k' is ", k, ", axis ", axis, " of 'x' has size ", size);
  out.shape[axis] = k;
  return ValueTypes{out, {Dtype::i64, out.shape}};
}

Result<void> run_topk(const CallInfo& call, std::span<const Array> inputs, std::span<const Array> results) {
  const std::size_t axis = TESSERA_TRY(call.axis(call.integer("axis"), inputs[0].rank()));
  const Order order = call.flag("largest") ? Order::descending : Order::ascending;
  const auto k = static_cast<std::size_t>(results[0].shape()[axis]);
  for_each_sorted_row(inputs[0], results[0].layout, axis, order,
                      [&](std::span<std::int64_t> indices, std::int64_t from, std::int64_t to) {
                        const auto first = indices.first(k);
                        if (!call.flag("sorted")) std::sort(first.begin(), first.end());
                        write_row(first, inputs[0], from, results, to, axis);
                      });
  return {};
}

Values decompose_topk(Builder& b, const CallInfo& call, std::span<const Value> inputs) {
  const std::int64_t axis = call.integer("axis");
  const Dim& k = call.size("k");
  const Values all = b.call_all("sort", inputs, {{"axis", axis}, {"descending", call.flag("largest")}});
  if (all.size() != 2) return {Value(), Value()};
  Shape shape = call.input(0).shape;
  shape[value_or_throw(call.axis(axis, shape.size()))] = k;
  const auto first = [&](Value of) { return reshape(slice(of, axis, 0, k), shape); };
  if (call.flag("sorted")) return {first(all[0]), first(all[1])};
  const Value indices = b.call_all("sort", {first(all[1])}, {{"axis", axis}})[0];
  return {b.call("gather_elements", {inputs[0], indices}, {{"axis", axis}}), indices};
}

constexpr AttributeSpec sort_attributes[] = {{"axis", AttributeKind::integer, false, -1},
                                             {"descending", AttributeKind::boolean}};
constexpr AttributeSpec topk_attributes[] = {{"k", AttributeKind::size, true},
                                             {"axis", AttributeKind::integer, false, -1},
                                             {"largest", AttributeKind::boolean, false, 1},
                                             {"sorted", AttributeKind::boolean, false, 1}};
constexpr std::string_view order_results[] = {"values", "indices"};

constexpr Card sort_family[] = {
    {.name = "sort",
     .summary =
         "the elements along an axis in order, and where each was; equal ones keep their order, NaN is "
         "greater than all",
     .inputs = input_x,
     .attributes = sort_attributes,
     .results = order_results,
     .T = all_dtypes,
     .traits = {.costly = true},
     .oracle = "torch:sort",
     .infer = infer_sort,
     .reference = run_sort,
     .gradient = gradient_order},
    {.name = "topk",
     .summary =
         "the first `k` of the elements along an axis sorted, and where each was; in the order of x if "
         "not `sorted`",
     .inputs = input_x,
     .attributes = topk_attributes,
     .results = order_results,
     .T = all_dtypes,
     .traits = {.costly = true, .composite = true},
     .onnx = {"TopK"},
     .oracle = "torch:topk",
     .infer = infer_topk,
     .reference = run_topk,
     .gradient = gradient_order,
     .decompose = decompose_topk},
};

}  // namespace

std::span<const Card> tessera::op::sort_cards() { return sort_family; }
