// GridSample: elements at places that a tensor says.
#include <array>

#include "tessera/onnx/mapping.h"

using namespace tessera;
using namespace tessera::onnx;

namespace {

struct Grid {
  NodeCall& node;
  Value x;       ///< [N, C, H * W]
  Value gx, gy;  ///< places in elements, [N, P]
  std::int64_t height = 0, width = 0;
  std::string padding;
  bool aligns = false;

  [[nodiscard]] Value number(double value) const { return node.b.constant(value, gx.dtype()); }
  [[nodiscard]] Value call(std::string_view op, Value a, Value b) const { return node.b.call(op, {a, b}); }

  /// Whole places mirrored into [0, size).
  [[nodiscard]] Value mirrored(Value at, std::int64_t size) const {
    const auto n = static_cast<double>(size);
    if (aligns && size == 1) return at * 0.0;
    const double period = aligns ? 2 * (n - 1) : 2 * n, last = aligns ? 2 * (n - 1) : 2 * n - 1;
    const Value inside = call("mod", at, number(period));
    return where(call("gt", inside, number(n - 1)), last - inside, inside);
  }

  [[nodiscard]] Value inside(Value at, std::int64_t size) const {
    return node.b.call("logical_and",
                       {call("ge", at, number(0)), call("le", at, number(static_cast<double>(size - 1)))});
  }

  [[nodiscard]] Value clamped(Value at, std::int64_t size) const {
    if (padding == "reflection") at = mirrored(at, size);
    return node.b.call("clip", {at, number(0), number(static_cast<double>(size - 1))});
  }

  /// The elements at whole places, [N, C, P]; zeros outside if the padding says so.
  [[nodiscard]] Value elements(Value px, Value py) const {
    const Value flat = clamped(py, height) * static_cast<double>(width) + clamped(px, width);
    const Shape rows{gx.shape()[0], Dim(1), gx.shape()[1]}, all{x.shape()[0], x.shape()[1], gx.shape()[1]};
    const Value at = broadcast_to(reshape(cast(flat, Dtype::i64), rows), all);
    const Value found = node.b.call("gather_elements", {x, at}, {{"axis", 2}});
    if (padding != "zeros") return found;
    const Value is_inside = node.b.call("logical_and", {inside(px, width), inside(py, height)});
    return where(reshape(is_inside, rows), found, node.b.constant(0, x.dtype()));
  }

  [[nodiscard]] Value weighted(Value px, Value py, Value weight) const {
    const Shape rows{gx.shape()[0], Dim(1), gx.shape()[1]};
    return elements(px, py) * cast(reshape(weight, rows), x.dtype());
  }
};

Value bilinear(const Grid& g) {
  const Value x0 = unary("floor", g.gx), y0 = unary("floor", g.gy), tx = g.gx - x0, ty = g.gy - y0;
  return g.weighted(x0, y0, (1.0 - tx) * (1.0 - ty)) + g.weighted(x0 + 1.0, y0, tx * (1.0 - ty)) +
         g.weighted(x0, y0 + 1.0, (1.0 - tx) * ty) + g.weighted(x0 + 1.0, y0 + 1.0, tx * ty);
}

/// The weights of cubic convolution, as formulas.
std::array<Value, 4> cubic_weights(Value t) {
  constexpr double a = -0.75;
  const auto near = [&](Value d) { return ((d * (a + 2)) - (a + 3)) * d * d + 1.0; };
  const auto far = [&](Value d) { return (((d * a) - 5 * a) * d + 8 * a) * d - 4 * a; };
  return {far(t + 1.0), near(t), near(1.0 - t), far(2.0 - t)};
}

Value bicubic(const Grid& g) {
  const Value x0 = unary("floor", g.gx), y0 = unary("floor", g.gy);
  const auto wx = cubic_weights(g.gx - x0), wy = cubic_weights(g.gy - y0);
  Value out;
  for (std::size_t j = 0; j < 4; ++j)
    for (std::size_t i = 0; i < 4; ++i) {
      const Value part =
          g.weighted(x0 + (static_cast<double>(i) - 1), y0 + (static_cast<double>(j) - 1), wx[i] * wy[j]);
      out = out ? out + part : part;
    }
  return out;
}

/// From [-1, 1] to elements.
Value denormalised(Value g, std::int64_t size, bool aligns) {
  const auto n = static_cast<double>(size);
  return aligns ? (g + 1.0) * ((n - 1) / 2) : ((g + 1.0) * n - 1.0) / 2.0;
}

Result<Items> map_grid_sample(NodeCall& node) {
  const Value x = node.in(0), grid = node.in(1);
  TESSERA_TRY(node.status());
  if (x.rank() != 4 || grid.rank() != 4)
    return node.unsupported("inputs are ", x.type(), " and ", grid.type(), ", expected rank 4");
  const Shape &from = x.shape(), &to = grid.shape();
  if (!from[2].is_constant() || !from[3].is_constant())
    return node.unsupported("the sizes of ", x.type(), " must be numbers");
  const bool aligns = node.flag("align_corners", false);
  const Shape places{to[0], to[1] * to[2]};
  const auto coordinate = [&](std::int64_t k, std::int64_t size) {
    return denormalised(reshape(slice(grid, 3, k, k + 1), places), size, aligns);
  };
  const std::int64_t height = from[2].value(), width = from[3].value();
  const Grid g{node,
               reshape(x, Shape{from[0], from[1], from[2] * from[3]}),
               coordinate(0, width),
               coordinate(1, height),
               height,
               width,
               node.text("padding_mode", "zeros"),
               aligns};
  TESSERA_TRY(node.status());
  const std::string mode = node.text("mode", "bilinear");
  Value out;
  if (mode == "nearest")
    out = g.elements(unary("round", g.gx), unary("round", g.gy));
  else if (mode == "bilinear" || mode == "linear")
    out = bilinear(g);
  else if (mode == "bicubic" || mode == "cubic")
    out = bicubic(g);
  else
    return node.error("attribute 'mode' is ", shown(mode));
  return Items{reshape(out, Shape{from[0], from[1], to[1], to[2]})};
}

constexpr Mapping grid_table[] = {{"GridSample", map_grid_sample}};

}  // namespace

std::span<const Mapping> tessera::onnx::grid_mappings() { return grid_table; }
