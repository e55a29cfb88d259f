// Operators that take parts of tensors, and those that put parts together.
#include <algorithm>
#include <map>

#include "tessera/onnx/mapping.h"
#include "tessera/onnx/value_target.h"

using namespace tessera;
using namespace tessera::onnx;

namespace {

// ---- slices

/// 2^31 - 1 and beyond is how exporters write "to the end", which the slice op knows as 2^62.
Dim position(const Dim& given) {
  constexpr std::int64_t end = std::int64_t{1} << 62, marker = (std::int64_t{1} << 31) - 1;
  if (!given.is_constant()) return given;
  if (given.value() >= marker) return end;
  return given.value() < -marker ? Dim(-end) : given;
}

Result<Items> sliced(NodeCall& node, std::span<const Dim> starts, std::span<const Dim> stops,
                     std::vector<std::int64_t> axes, std::vector<std::int64_t> steps) {
  if (starts.size() != stops.size())
    return node.error("there are ", starts.size(), " starts and ", stops.size(), " ends");
  Shape from, to;
  for (const Dim& start : starts) from.push_back(position(start));
  for (const Dim& stop : stops) to.push_back(position(stop));
  if (from.empty()) return Items{node.in(0)};
  return Items{
      node.b.call("slice", {node.in(0)},
                  {{"starts", from}, {"stops", to}, {"axes", std::move(axes)}, {"steps", std::move(steps)}})};
}

Result<Items> map_old_slice(NodeCall& node) {
  const auto starts = node.integers("starts"), ends = node.integers("ends");
  TESSERA_TRY(node.status());
  return sliced(node, std::vector<Dim>(starts.begin(), starts.end()),
                std::vector<Dim>(ends.begin(), ends.end()), node.integers("axes"), {});
}

/// Positions that the program computes, as places from the beginning: none is negative or behind the end.
Result<std::vector<Dim>> learned_positions(NodeCall& node, Value positions,
                                           std::span<const std::int64_t> axes, Value x,
                                           std::string_view what) {
  std::vector<Dim> along;
  for (const std::int64_t axis : axes)
    along.push_back(x.shape()[static_cast<std::size_t>(TESSERA_TRY(node.axis(axis, x.rank())))]);
  const Value given = cast(positions, Dtype::i64), sizes = node.target.sizes_vector(along);
  TESSERA_TRY(node.status());
  if (given.shape() != sizes.shape())
    return node.error(what, " is ", positions.type(), " for ", axes.size(), " axes");
  const Value zero = given * 0.0;
  const Value from_begin = where(node.b.call("lt", {given, zero}), given + sizes, given);
  const Value inside = node.b.call("minimum", {node.b.call("maximum", {from_begin, zero}), sizes});
  return node.learned_sizes(inside, what);
}

Result<Items> map_slice(NodeCall& node) {
  const Value x = node.in(0);
  std::vector<std::int64_t> axes, steps;
  if (node.has(3)) axes = TESSERA_TRY(node.integers_in(3));
  if (node.has(4)) steps = TESSERA_TRY(node.integers_in(4));
  const Value from = node.in(1), to = node.in(2);
  TESSERA_TRY(node.status());
  const bool goes_forward =
      std::all_of(steps.begin(), steps.end(), [](std::int64_t step) { return step > 0; });
  const bool are_known = node.target.sizes(from) && node.target.sizes(to);
  if (are_known || !goes_forward || !ir::is_integer(from.dtype()) || !ir::is_integer(to.dtype())) {
    const auto starts = TESSERA_TRY(node.sizes_in(1)), ends = TESSERA_TRY(node.sizes_in(2));
    return sliced(node, starts, ends, std::move(axes), std::move(steps));
  }
  const auto count = from.rank() == 1 ? ir::element_count(from.shape()) : std::nullopt;
  if (!count) return node.unsupported("input 1 must have a known length");
  if (axes.empty()) axes = axes_from(0, static_cast<std::size_t>(*count));
  const auto starts = TESSERA_TRY(learned_positions(node, from, axes, x, "input 1"));
  const auto ends = TESSERA_TRY(learned_positions(node, to, axes, x, "input 2"));
  return sliced(node, starts, ends, std::move(axes), std::move(steps));
}

/// The sizes of `count` parts that are as equal as can be: only the last may be smaller.
std::vector<Dim> equal_parts(const Dim& size, std::size_t count) {
  const auto parts = static_cast<std::int64_t>(std::max<std::size_t>(1, count));
  const Dim each = ceil_div(size, Dim(parts));
  std::vector<Dim> out(count, each);
  if (!out.empty()) out.back() = size - each * Dim(parts - 1);
  return out;
}

Result<Items> map_split(NodeCall& node) {
  const Value x = node.in(0);
  TESSERA_TRY(node.status());
  const std::int64_t axis = TESSERA_TRY(node.axis(node.integer("axis", 0), x.rank()));
  const auto given = node.integers("split");
  std::vector<Dim> sizes(given.begin(), given.end());
  if (node.has(1)) sizes = TESSERA_TRY(node.sizes_in(1));
  if (sizes.empty()) sizes = equal_parts(x.shape()[static_cast<std::size_t>(axis)], node.node.outputs.size());
  const Values parts =
      node.b.call_all("split", {x}, {{"sizes", Shape(sizes.begin(), sizes.end())}, {"axis", axis}});
  return Items(parts.begin(), parts.end());
}

Result<Items> map_concat(NodeCall& node) {
  return Items{node.b.call("concat", node.all(), {{"axis", node.integer("axis", node.opset < 4 ? 1 : 0)}})};
}

// ---- padding

Result<Items> padded(NodeCall& node, std::span<const Dim> pads, std::span<const std::int64_t> axes,
                     Value value) {
  const Value x = node.in(0);
  TESSERA_TRY(node.status());
  if (pads.size() != 2 * axes.size())
    return node.error("there are ", pads.size(), " pads, expected ", 2 * axes.size());
  Shape before(x.rank(), Dim(0)), after(x.rank(), Dim(0));
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<std::size_t>(TESSERA_TRY(node.axis(axes[i], x.rank())));
    before[axis] = pads[i];
    after[axis] = pads[axes.size() + i];
  }
  return Items{node.b.call("pad", {x, value},
                           {{"before", before}, {"after", after}, {"mode", node.text("mode", "constant")}})};
}

Result<Items> map_old_pad(NodeCall& node) {
  const Value x = node.in(0);
  const auto pads = node.integers(node.opset < 2 ? "paddings" : "pads");
  TESSERA_TRY(node.status());
  const Value value = node.b.constant(node.number("value", 0), x.dtype());
  return padded(node, std::vector<Dim>(pads.begin(), pads.end()), axes_from(0, x.rank()), value);
}

Result<Items> map_pad(NodeCall& node) {
  const Value x = node.in(0);
  const auto pads = TESSERA_TRY(node.sizes_in(1));
  const Value value = node.has(2) ? reshape(node.in(2), {}) : node.b.constant(0, x.dtype());
  const auto axes = node.has(3) ? TESSERA_TRY(node.integers_in(3)) : axes_from(0, x.rank());
  return padded(node, pads, axes, value);
}

// ---- indices

Result<Items> map_scatter(NodeCall& node) {
  return Items{node.b.call("scatter_elements", {node.in(0), node.in(1), node.in(2)},
                           {{"axis", node.integer("axis", 0)}})};
}

Result<Items> map_one_hot(NodeCall& node) {
  const Value indices = cast(node.in(0), Dtype::i64), values = node.in(2);
  const Value depth_value = cast(node.in(1), Dtype::i64);
  TESSERA_TRY(node.status());
  const auto depths = node.target.sizes(depth_value);
  if (!depths || depths->size() != 1) return node.unsupported("input 1 must be one number that is known");
  const Dim& depth = (*depths)[0];
  const std::size_t rank = indices.rank() + 1;
  const std::int64_t axis = TESSERA_TRY(node.axis(node.integer("axis", -1), rank));
  Shape along(rank, Dim(1));
  along[static_cast<std::size_t>(axis)] = depth;
  const Value negative = node.b.call("lt", {indices, node.b.constant(0, Dtype::i64)});
  const Value from_begin = where(negative, indices + reshape(depth_value, {}), indices);
  const Value hot = node.b.call("eq", {node.b.call("unsqueeze", {from_begin}, {{"axes", std::vector{axis}}}),
                                       reshape(op::range(node.b, 0, depth), along)});
  const Value off = reshape(slice(values, 0, 0, 1), {}), on = reshape(slice(values, 0, 1, 2), {});
  return Items{where(hot, on, off)};
}

Result<Items> map_trilu(NodeCall& node) {
  const std::int64_t k = node.has(1) ? TESSERA_TRY(node.integer_in(1)) : 0;
  return Items{node.b.call(node.flag("upper", true) ? "triu" : "tril", {node.in(0)}, {{"diagonal", k}})};
}

/// Along the time axis, index i becomes length - 1 - i within the length of its sequence.
Result<Items> map_reverse_sequence(NodeCall& node) {
  const Value x = node.in(0), lengths = cast(node.in(1), Dtype::i64);
  TESSERA_TRY(node.status());
  const auto batch =
      static_cast<std::size_t>(TESSERA_TRY(node.axis(node.integer("batch_axis", 1), x.rank())));
  const auto time = static_cast<std::size_t>(TESSERA_TRY(node.axis(node.integer("time_axis", 0), x.rank())));
  if (batch == time) return node.error("attributes 'batch_axis' and 'time_axis' are both ", batch);
  Shape over_batch(x.rank(), Dim(1)), over_time(x.rank(), Dim(1));
  over_batch[batch] = x.shape()[batch];
  over_time[time] = x.shape()[time];
  const Value length = reshape(lengths, over_batch);
  const Value at = reshape(op::range(node.b, 0, x.shape()[time]), over_time);
  const Value inside = node.b.call("lt", {at, length});
  const Value from = broadcast_to(where(inside, length - at - 1.0, at), x.shape());
  return Items{node.b.call("gather_elements", {x, from}, {{"axis", static_cast<std::int64_t>(time)}})};
}

// ---- sizes that depend on data

/// The places of all elements that are not 0, a row each.
Result<Value> places_of(NodeCall& node, Value x) {
  const Values found = node.b.call_all("nonzero", {x});
  TESSERA_TRY(node.status());
  const auto count = TESSERA_TRY(node.learned_sizes(found[1], "the number of elements that are not 0"));
  return node.b.call("slice", {found[0]}, {{"starts", Shape{0}}, {"stops", Shape{count[0]}}});
}

Result<Items> map_nonzero(NodeCall& node) {
  const Value places = TESSERA_TRY(places_of(node, node.in(0)));
  return Items{transpose_matrix(places)};
}

Result<Items> map_compress(NodeCall& node) {
  Value x = node.in(0);
  const Value places = TESSERA_TRY(places_of(node, node.in(1)));
  TESSERA_TRY(node.status());
  if (places.shape()[1] != Dim(1)) return node.error("input 1 is ", node.in(1).type(), ", expected a vector");
  const Value kept = reshape(places, Shape{places.shape()[0]});
  const bool is_flat = node.attribute("axis") == nullptr;
  if (is_flat) x = node.b.call("reshape", {x}, {{"shape", Shape{-1}}});
  return Items{node.b.call("gather", {x, kept}, {{"axis", is_flat ? 0 : node.integer("axis", 0)}})};
}

/// The distinct rows of a matrix, and for each row which one it is.
struct DistinctRows {
  std::vector<std::int64_t> first, group_of, counts;
};
DistinctRows distinct_rows(const std::vector<double>& rows, std::size_t count, bool is_sorted) {
  const std::size_t width = count == 0 ? 0 : rows.size() / count;
  std::map<std::vector<double>, std::int64_t> groups;
  DistinctRows out;
  for (std::size_t i = 0; i < count; ++i) {
    const std::vector<double> row(rows.begin() + static_cast<std::ptrdiff_t>(i * width),
                                  rows.begin() + static_cast<std::ptrdiff_t>((i + 1) * width));
    const auto [at, is_new] = groups.emplace(row, static_cast<std::int64_t>(out.first.size()));
    if (is_new) {
      out.first.push_back(static_cast<std::int64_t>(i));
      out.counts.push_back(0);
    }
    out.group_of.push_back(at->second);
    ++out.counts[static_cast<std::size_t>(at->second)];
  }
  if (!is_sorted) return out;
  std::vector<std::int64_t> rank_of(groups.size());
  DistinctRows sorted{{}, out.group_of, {}};
  for (const auto& [row, group] : groups) {  // a map walks in order
    rank_of[static_cast<std::size_t>(group)] = static_cast<std::int64_t>(sorted.first.size());
    sorted.first.push_back(out.first[static_cast<std::size_t>(group)]);
    sorted.counts.push_back(out.counts[static_cast<std::size_t>(group)]);
  }
  for (std::int64_t& group : sorted.group_of) group = rank_of[static_cast<std::size_t>(group)];
  return sorted;
}

Result<Items> map_unique(NodeCall& node) {
  Value x = node.in(0);
  TESSERA_TRY(node.status());
  std::int64_t axis = 0;
  if (node.attribute("axis") == nullptr)
    x = node.b.call("reshape", {x}, {{"shape", Shape{-1}}});
  else
    axis = TESSERA_TRY(node.axis(node.integer("axis", 0), x.rank()));
  TESSERA_TRY(node.status());
  // The rows are compared with the axis in front.
  std::vector<std::int64_t> order{axis};
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(x.rank()); ++i)
    if (i != axis) order.push_back(i);
  const HostTensor rows = TESSERA_TRY(node.elements_of(transpose(x, order), "input 0"));
  const DistinctRows found =
      distinct_rows(numbers_of(rows), static_cast<std::size_t>(rows.shape()[0]), node.flag("sorted", true));
  const Value first = node.vector_of(found.first);
  return Items{node.b.call("gather", {x, first}, {{"axis", axis}}), first, node.vector_of(found.group_of),
               node.vector_of(found.counts)};
}

constexpr Mapping indexing_table[] = {
    {"Compress", map_compress},
    {"Concat", map_concat},
    {"NonZero", map_nonzero},
    {"OneHot", map_one_hot},
    {"Pad", map_old_pad},
    {"Pad", map_pad, 11},
    {"ReverseSequence", map_reverse_sequence},
    {"Scatter", map_scatter},
    {"Slice", map_old_slice},
    {"Slice", map_slice, 10},
    {"Split", map_split},
    {"Trilu", map_trilu},
    {"Unique", map_unique},
};

}  // namespace

std::span<const Mapping> tessera::onnx::indexing_mappings() { return indexing_table; }
