// Ops that go along an axis in order: running sums and products, sorting.
#include "tessera/op/families/make.h"

using namespace tessera;
using namespace tessera::op;

namespace {

Result<ValueTypes> infer_scan(const CallInfo& call) {
  TESSERA_TRY(call.axis(call.integer("axis"), call.input(0).rank()));
  return ValueTypes{call.input(0)};
}

/// result[i] = combine of all elements up to i, without i itself if `exclusive`, from the end if `reverse`.
template <class Combine>
Result<void> scan(const CallInfo& call, const Array& x, const Array& result, double start, Combine combine) {
  const std::size_t axis = TESSERA_TRY(call.axis(call.integer("axis"), x.rank()));
  const bool exclusive = call.flag("exclusive"), reverse = call.flag("reverse");
  Layout from = x.layout, to = result.layout;
  const std::int64_t length = from.shape[axis];
  const std::int64_t from_stride = from.strides[axis], to_stride = to.strides[axis];
  from.shape[axis] = to.shape[axis] = std::min<std::int64_t>(length, 1);
  visit_wide(x.dtype, [&]<class W>(W*) {
    std::vector<W> row(static_cast<std::size_t>(length));
    for_each_offset<2>(from.shape, {&from, &to}, [&](const auto& at) {
      loader<W>(x.dtype)(x.data, at[0], from_stride, row.size(), row.data());
      W total = start;
      for (std::size_t k = 0; k < row.size(); ++k) {
        W& element = row[reverse ? row.size() - 1 - k : k];
        const W next = combine(total, element);
        element = exclusive ? total : next;
        total = next;
      }
      storer<W>(result.dtype)(result.data, at[1], to_stride, row.size(), row.data());
    });
  });
  return {};
}

Result<void> run_cumsum(const CallInfo& call, std::span<const Array> inputs, std::span<const Array> results) {
  return scan(call, inputs[0], results[0], 0, [](const auto& a, const auto& b) { return a + b; });
}
Result<void> run_cumprod(const CallInfo& call, std::span<const Array> inputs,
                         std::span<const Array> results) {
  return scan(call, inputs[0], results[0], 1, [](const auto& a, const auto& b) { return a * b; });
}

Attributes scan_attributes_of(const CallInfo& call, bool reverse) {
  return {{"axis", call.integer("axis")}, {"exclusive", call.flag("exclusive")}, {"reverse", reverse}};
}

Values gradient_cumsum(GradientCall& g) {
  return {g.b.call("cumsum", {g.dy()}, scan_attributes_of(g.info, !g.info.flag("reverse")))};
}

/// d y_j / d x_i = product of the others up to j. Without dividing by x_i, which may be 0: the products of
/// all pairs (i, j) are scans of a matrix that has 1 where an element is left out.
Values gradient_cumprod(GradientCall& g) {
  const Value x = g.x();
  const std::size_t rank = x.rank();
  const std::size_t axis = value_or_throw(g.info.axis(g.info.integer("axis"), rank));
  std::vector<std::int64_t> order;  // the scanned axis last
  for (std::size_t i = 0; i < rank; ++i)
    if (i != axis) order.push_back(static_cast<std::int64_t>(i));
  order.push_back(static_cast<std::int64_t>(axis));
  std::vector<std::int64_t> inverse(rank);
  for (std::size_t i = 0; i < rank; ++i)
    inverse[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  const Value row = transpose(x, order), dy = transpose(g.dy(), order);
  const Dim n = x.shape()[axis];
  Shape matrix = row.shape();  // [..., i, j]
  matrix.insert(matrix.end() - 1, n);
  Shape as_row = row.shape();
  as_row.insert(as_row.end() - 1, Dim(1));
  const Value eye = g.b.call("eye", {}, {{"shape", Shape{n, n}}, {"dtype", Dtype::boolean}});
  const Value one = g.b.constant(1, x.dtype());
  const Value left_out = where(eye, one, broadcast_to(reshape(row, as_row), matrix));
  const std::int64_t last = static_cast<std::int64_t>(matrix.size()) - 1;
  Attributes along = scan_attributes_of(g.info, g.info.flag("reverse"));
  along.set("axis", last);
  const Value products = g.b.call("cumprod", {left_out}, along);
  // y_j depends on x_i only if i comes before j in the order of the scan, or is j unless exclusive.
  const bool reverse = g.info.flag("reverse");
  const std::int64_t diagonal = g.info.flag("exclusive") ? (reverse ? -1 : 1) : 0;
  const Value counts =
      g.b.call(reverse ? "tril" : "triu", {full(g.b, 1, {x.dtype(), {n, n}})}, {{"diagonal", diagonal}});
  const Value dx = sum(products * (counts * reshape(dy, as_row)), {last}, false);
  return {transpose(dx, inverse)};
}

constexpr AttributeSpec scan_attributes[] = {
    {.name = "axis", .kind = AttributeKind::integer, .required = true},
    {.name = "exclusive", .kind = AttributeKind::boolean},
    {.name = "reverse", .kind = AttributeKind::boolean},
};

constexpr Card scan_family[] = {
    {.name = "cumprod",
     .summary = "running product along an axis",
     .inputs = input_x,
     .attributes = scan_attributes,
     .T = number_dtypes,
     .oracle = "torch:cumprod",
     .infer = infer_scan,
     .reference = run_cumprod,
     .gradient = gradient_cumprod},
    {.name = "cumsum",
     .summary = "running sum along an axis",
     .inputs = input_x,
     .attributes = scan_attributes,
     .T = number_dtypes,
     .onnx = {"CumSum"},
     .oracle = "torch:cumsum",
     .infer = infer_scan,
     .reference = run_cumsum,
     .gradient = gradient_cumsum},
};

}  // namespace

std::span<const Card> tessera::op::scan_cards() { return scan_family; }
