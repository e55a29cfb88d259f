// Operators about shapes: those that change one, and those that make tensors of one.
#include <algorithm>
#include <cmath>

#include "tessera/onnx/mapping.h"
#include "tessera/onnx/value_target.h"

using namespace tessera;
using namespace tessera::onnx;

namespace {

// ---- shapes as values

Result<Items> map_shape(NodeCall& node) {
  const Value x = node.in(0);
  TESSERA_TRY(node.status());
  const auto rank = static_cast<std::int64_t>(x.rank());
  const auto place = [&](std::int64_t at) {
    return std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  const std::int64_t start = place(node.integer("start", 0));
  const std::int64_t end = std::max(start, place(node.integer("end", rank)));
  const std::span<const Dim> sizes(x.shape().begin(), x.shape().end());
  return Items{node.target.sizes_vector(
      sizes.subspan(static_cast<std::size_t>(start), static_cast<std::size_t>(end - start)))};
}

Result<Items> map_size(NodeCall& node) {
  const Value x = node.in(0);
  TESSERA_TRY(node.status());
  const Dim count = ir::product(std::span<const Dim>(x.shape().begin(), x.shape().end()));
  return Items{reshape(node.target.sizes_vector(std::span<const Dim>(&count, 1)), {})};
}

// ---- the same elements

/// What is left for a size of -1: the sizes of x without those that the other sizes have too. Dividing one
/// product by another says the same only where no symbol is 0, and reads worse.
Dim rest_of(const Shape& from, const Shape& to) {
  std::vector<Dim> left(from.begin(), from.end());
  Dim others = 1;
  for (const Dim& size : to) {
    if (size == Dim(-1)) continue;
    const auto same = std::find(left.begin(), left.end(), size);
    if (same != left.end())
      left.erase(same);
    else
      others = others * size;
  }
  const Dim all = ir::product(left);
  return others == Dim(1) ? all : floor_div(all, others);
}

Value reshaped(NodeCall& node, Value x, std::span<const Dim> sizes) {
  const bool allows_zero = node.flag("allowzero", false);
  Shape shape;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    shape.push_back(sizes[i] == Dim(0) && !allows_zero && i < x.rank() ? x.shape()[i] : sizes[i]);
  const bool is_symbolic = !ir::constant_shape(x.shape()) || !ir::constant_shape(shape);
  const auto unknown = std::find(shape.begin(), shape.end(), Dim(-1));
  if (is_symbolic && std::count(shape.begin(), shape.end(), Dim(-1)) == 1)
    *unknown = rest_of(x.shape(), shape);
  return node.b.call("reshape", {x}, {{"shape", shape}});
}

Result<Items> map_old_reshape(NodeCall& node) {
  const Value x = node.in(0);
  const auto sizes = node.integers("shape");
  TESSERA_TRY(node.status());
  return Items{reshaped(node, x, std::vector<Dim>(sizes.begin(), sizes.end()))};
}

Result<Items> map_reshape(NodeCall& node) {
  const Value x = node.in(0);
  return Items{reshaped(node, x, TESSERA_TRY(node.sizes_in(1)))};
}

Result<Items> map_flatten(NodeCall& node) {
  const Value x = node.in(0);
  TESSERA_TRY(node.status());
  const auto rank = static_cast<std::int64_t>(x.rank());
  const std::int64_t axis = node.integer("axis", 1);
  if (axis < -rank || axis > rank) return node.error("axis ", axis, " is outside [", -rank, ", ", rank, "]");
  const std::span<const Dim> sizes(x.shape().begin(), x.shape().end());
  const auto split = static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
  return Items{reshape(x, Shape{ir::product(sizes.first(split)), ir::product(sizes.subspan(split))})};
}

/// `axes` is an input from version 13 on.
Result<std::vector<std::int64_t>> listed_axes(NodeCall& node) {
  if (node.opset >= 13) return node.has(1) ? node.integers_in(1) : std::vector<std::int64_t>();
  return node.integers("axes");
}

Result<Items> map_squeeze(NodeCall& node) {
  const auto axes = TESSERA_TRY(listed_axes(node));
  return Items{node.b.call("squeeze", {node.in(0)}, {{"axes", axes}})};
}
Result<Items> map_unsqueeze(NodeCall& node) {
  const auto axes = TESSERA_TRY(listed_axes(node));
  return Items{node.b.call("unsqueeze", {node.in(0)}, {{"axes", axes}})};
}
Result<Items> map_transpose(NodeCall& node) {
  return Items{node.b.call("transpose", {node.in(0)}, {{"permutation", node.integers("perm")}})};
}

/// Blocks of `size` by `size` between the channels and the two spatial axes.
struct Blocks {
  Value x;
  Dim n, c, h, w;
  std::int64_t size = 0;
};
Result<Blocks> blocks_of(NodeCall& node) {
  Blocks out{.x = node.in(0), .size = node.integer("blocksize", 0)};
  TESSERA_TRY(node.status());
  if (out.x.rank() != 4) return node.error("input 0 is ", out.x.type(), ", expected rank 4");
  if (out.size < 1 || out.size > 1 << 15) return node.error("attribute 'blocksize' is ", out.size);
  const Shape& shape = out.x.shape();
  out.n = shape[0], out.c = shape[1], out.h = shape[2], out.w = shape[3];
  return out;
}

Result<Items> map_depth_to_space(NodeCall& node) {
  const auto [x, n, c, h, w, size] = TESSERA_TRY(blocks_of(node));
  const Dim less = floor_div(c, Dim(size * size));
  const bool is_crd = node.text("mode", "DCR") == "CRD";
  const Shape split = is_crd ? Shape{n, less, size, size, h, w} : Shape{n, size, size, less, h, w};
  const std::vector<std::int64_t> order =
      is_crd ? std::vector<std::int64_t>{0, 1, 4, 2, 5, 3} : std::vector<std::int64_t>{0, 3, 4, 1, 5, 2};
  return Items{reshape(transpose(reshape(x, split), order), Shape{n, less, h * Dim(size), w * Dim(size)})};
}

Result<Items> map_space_to_depth(NodeCall& node) {
  const auto [x, n, c, h, w, size] = TESSERA_TRY(blocks_of(node));
  const Dim rows = floor_div(h, Dim(size)), columns = floor_div(w, Dim(size));
  const Value split = reshape(x, Shape{n, c, rows, size, columns, size});
  return Items{reshape(transpose(split, std::vector<std::int64_t>{0, 3, 5, 1, 2, 4}),
                       Shape{n, c * Dim(size * size), rows, columns})};
}

// ---- repeated elements

/// The shape of both by broadcasting. Where two symbols meet, the one that is asked for counts, and
/// `broadcast_to` checks it.
Shape broadcast_shape(const Shape& a, std::span<const Dim> asked) {
  const std::size_t rank = std::max(a.size(), asked.size());
  Shape out(rank, Dim(1));
  for (std::size_t i = 0; i < rank; ++i) {
    const Dim own = i < rank - a.size() ? Dim(1) : a[i - (rank - a.size())];
    const Dim other = i < rank - asked.size() ? Dim(1) : asked[i - (rank - asked.size())];
    out[i] = other == Dim(1) ? own : other;
  }
  return out;
}

Result<Items> map_expand(NodeCall& node) {
  const Value x = node.in(0);
  const auto sizes = TESSERA_TRY(node.sizes_in(1));
  return Items{unary("identity", broadcast_to(x, broadcast_shape(x.shape(), sizes)))};
}

Result<Items> map_tile(NodeCall& node) {
  const auto repeats = TESSERA_TRY(node.sizes_in(1));
  return Items{node.b.call("tile", {node.in(0)}, {{"repeats", Shape(repeats.begin(), repeats.end())}})};
}

Result<Items> map_old_tile(NodeCall& node) {
  const Value x = node.in(0);
  const std::int64_t axis = TESSERA_TRY(node.integer_in(2)), tiles = TESSERA_TRY(node.integer_in(1));
  Shape repeats(x.rank(), Dim(1));
  repeats[static_cast<std::size_t>(TESSERA_TRY(node.axis(axis, x.rank())))] = tiles;
  return Items{node.b.call("tile", {x}, {{"repeats", repeats}})};
}

// ---- tensors of a shape

Result<Items> map_constant(NodeCall& node) {
  if (node.attribute("value") != nullptr) return Items{node.target.tensor(TESSERA_TRY(node.tensor("value")))};
  if (node.attribute("value_float") != nullptr)
    return Items{node.b.constant(node.number("value_float", 0), Dtype::f32)};
  if (node.attribute("value_int") != nullptr) {
    const std::int64_t value = node.integer("value_int", 0);
    return Items{node.target.tensor(tensor_of(Dtype::i64, {}, std::span<const std::int64_t>(&value, 1)))};
  }
  if (node.attribute("value_ints") != nullptr) return Items{node.vector_of(node.integers("value_ints"))};
  if (node.attribute("value_floats") != nullptr) {
    const auto values = node.numbers("value_floats");
    return Items{node.target.tensor(
        tensor_of(Dtype::f32, {static_cast<std::int64_t>(values.size())}, std::span<const double>(values)))};
  }
  return node.unsupported(
      "only the attributes 'value', 'value_float', 'value_floats', 'value_int' and 'value_ints' "
      "have a meaning here");
}

/// Fails unless sizes that are numbers are not negative.
Result<Shape> checked_sizes(NodeCall& node, std::span<const Dim> sizes) {
  for (const Dim& size : sizes)
    if (size.is_constant() && size.value() < 0) return node.error("a shape has the size ", size);
  return Shape(sizes.begin(), sizes.end());
}

Result<Items> map_constant_of_shape(NodeCall& node) {
  const Shape shape =
      TESSERA_TRY(checked_sizes(node, TESSERA_TRY(node.learned_sizes(node.in(0), "input 0"))));
  if (node.attribute("value") == nullptr) return Items{op::full(node.b, 0, {Dtype::f32, shape})};
  const HostTensor value = TESSERA_TRY(node.tensor("value"));
  if (value.size() != 1) return node.error("attribute 'value' has ", value.size(), " elements, expected 1");
  return Items{node.b.call("full", {reshape(node.target.tensor(value), {})}, {{"shape", shape}})};
}

/// How many steps of `delta` lead from `start` to before `limit`.
Result<std::int64_t> range_count(NodeCall& node, double start, double limit, double delta) {
  if (delta == 0 || std::isnan(start + limit + delta)) return node.error("input 2, the step, is ", delta);
  const double count = std::ceil((limit - start) / delta);
  if (count > 9e15)
    return Error(ErrorCode::limit, cat("the range from ", start, " to ", limit, " is too long"));
  return static_cast<std::int64_t>(std::max(0.0, count));
}

Result<Items> map_range(NodeCall& node) {
  const Value start = node.in(0), limit = node.in(1), delta = node.in(2);
  TESSERA_TRY(node.status());
  for (const Value bound : {start, limit, delta})
    if (bound.rank() > 1) return node.error("a bound is ", bound.type(), ", expected one number");
  Dim count = 0;
  const auto step = node.target.elements(delta);
  const auto low = node.target.sizes(start), high = node.target.sizes(limit);
  if (low && high && low->size() == 1 && high->size() == 1 && step && step->size() == 1 &&
      numbers_of(*step)[0] == 1) {
    count = max(Dim(0), (*high)[0] - (*low)[0]);
  } else if (ir::is_integer(start.dtype()) && step && step->size() == 1 && numbers_of(*step)[0] == 1 &&
             (!low || !high)) {
    const Value distance = cast(reshape(limit, {}), Dtype::i64) - cast(reshape(start, {}), Dtype::i64);
    const Value length = node.b.call("maximum", {distance, distance * 0.0});
    count = TESSERA_TRY(node.learned_sizes(length, "the length of the range"))[0];
  } else {
    count = TESSERA_TRY(range_count(node, TESSERA_TRY(node.number_in(0)), TESSERA_TRY(node.number_in(1)),
                                    TESSERA_TRY(node.number_in(2))));
  }
  return Items{node.b.call("arange", {reshape(start, {}), reshape(delta, {})}, {{"count", Shape{count}}})};
}

Result<Items> map_eye_like(NodeCall& node) {
  const Value x = node.in(0);
  TESSERA_TRY(node.status());
  const Dtype dtype = TESSERA_TRY(node.dtype("dtype", x.dtype()));
  return Items{
      node.b.call("eye", {}, {{"shape", x.shape()}, {"diagonal", node.integer("k", 0)}, {"dtype", dtype}})};
}

constexpr Mapping shape_table[] = {
    {"Constant", map_constant},
    {"ConstantOfShape", map_constant_of_shape},
    {"DepthToSpace", map_depth_to_space},
    {"Expand", map_expand},
    {"EyeLike", map_eye_like},
    {"Flatten", map_flatten},
    {"Range", map_range},
    {"Reshape", map_old_reshape},
    {"Reshape", map_reshape, 5},
    {"Shape", map_shape},
    {"Size", map_size},
    {"SpaceToDepth", map_space_to_depth},
    {"Squeeze", map_squeeze},
    {"Tile", map_old_tile},
    {"Tile", map_tile, 6},
    {"Transpose", map_transpose},
    {"Unsqueeze", map_unsqueeze},
};

}  // namespace

std::span<const Mapping> tessera::onnx::shape_mappings() { return shape_table; }
