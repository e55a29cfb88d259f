#include "tessera/op/families/window.h"

#include <algorithm>

#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::op;

namespace {

constexpr std::int64_t largest_setting = 2147483647;  // keeps the arithmetic of positions far from overflow

/// A list attribute with one number per axis, or `per_axis` of them.
Result<std::vector<std::int64_t>> setting(const CallInfo& call, std::string_view name, std::size_t axes,
                                          std::size_t per_axis, std::int64_t least) {
  std::vector<std::int64_t> out = call.integers(name);
  if (out.empty()) return std::vector<std::int64_t>(axes * per_axis, least);
  if (out.size() != axes * per_axis)
    return call.error("'", name, "' [", join(out, ", "), "] has ", out.size(), " numbers, expected ",
                      axes * per_axis, " for ", axes, " spatial axes");
  for (std::int64_t value : out)
    if (value < least || value > largest_setting)
      return call.error("'", name, "' [", join(out, ", "), "] has ", value, ", expected ", least, " to ",
                        largest_setting);
  return out;
}

}  // namespace

Dim WindowAxis::span() const { return (kernel - Dim(1)) * Dim(dilation) + Dim(1); }

std::span<const Dim> tessera::op::spatial(const Shape& shape) {
  return std::span<const Dim>(shape.begin(), shape.end()).subspan(2);
}

Result<void> tessera::op::check_spatial_rank(const CallInfo& call, std::size_t input) {
  const ValueType& type = call.input(input);
  if (type.rank() >= 3 && type.rank() <= 5) return {};
  return call.error(call.input_name(input), " (", type, ") has rank ", type.rank(),
                    ", expected 3 to 5: batch, channels and 1 to 3 spatial axes");
}

Result<Window> tessera::op::window_of(const CallInfo& call, std::span<const Dim> kernel) {
  const std::size_t axes = kernel.size();
  const auto strides = TESSERA_TRY(setting(call, "strides", axes, 1, 1));
  const auto pads = TESSERA_TRY(setting(call, "pads", axes, 2, 0));
  const auto dilations = call.has("dilations") ? TESSERA_TRY(setting(call, "dilations", axes, 1, 1))
                                               : std::vector<std::int64_t>(axes, 1);
  Window out;
  for (std::size_t i = 0; i < axes; ++i) {
    if (kernel[i].is_constant() && kernel[i].value() < 1)
      return call.error("the kernel ", ir::to_text(Shape(kernel)), " has size ", kernel[i],
                        ", expected at least 1");
    out.push_back({kernel[i], strides[i], pads[i], pads[axes + i], dilations[i]});
  }
  return out;
}

Result<Shape> tessera::op::window_positions(const CallInfo& call, const Window& window, const ValueType& type,
                                            std::string_view name, WindowEnd end) {
  Shape out;
  for (std::size_t i = 0; i < window.size(); ++i) {
    const WindowAxis& axis = window[i];
    const Dim size = type.shape[2 + i];
    const Dim padded = size + Dim(axis.pad_begin) + Dim(axis.pad_end);
    if (ir::provably_at_least(axis.span() - Dim(1), padded))
      return call.error("axis ", 2 + i, " of ", name, " (", type, "): the window spans ", axis.span(),
                        " elements, with padding there are ", padded);
    const Dim room = padded - axis.span();
    if (end == WindowEnd::inside) {
      out.push_back(floor_div(room, axis.stride) + Dim(1));
    } else {
      // The last window begins before the padding at the end.
      out.push_back(
          ir::min(ceil_div(room, axis.stride) + Dim(1), ceil_div(size + Dim(axis.pad_begin), axis.stride)));
    }
  }
  return out;
}

Sliding Sliding::of(const Window& window, const Extents& shape, const Extents& positions) {
  Sliding out;
  for (std::size_t i = 0; i < window.size(); ++i) {
    const WindowAxis& axis = window[i];
    out.axes.push_back(
        {shape[2 + i], axis.kernel.value(), positions[2 + i], axis.stride, axis.pad_begin, axis.dilation});
    out.size *= shape[2 + i];
    out.taps *= axis.kernel.value();
    out.positions *= positions[2 + i];
  }
  return out;
}

std::int64_t Sliding::row_offset(std::int64_t row, const Extents& shift) const {
  std::int64_t offset = 0, stride = axes.back().size;
  for (std::size_t i = axes.size() - 1; i-- > 0;) {
    const std::int64_t at = row % axes[i].positions * axes[i].stride + shift[i];
    if (at < 0 || at >= axes[i].size) return -1;
    offset += at * stride;
    stride *= axes[i].size;
    row /= axes[i].positions;
  }
  return offset;
}
