// Windows that slide over the spatial axes of a tensor [batch, channels, spatial…]: what convolutions and
// pooling have in common. `Window` is on sizes that may be symbolic, for the shape rules; `Sliding` is on
// numbers, for the kernels.
#pragma once

#include <vector>

#include "tessera/op/call_info.h"

namespace tessera::op {

/// One axis: position p and tap k of the window see element p * stride + k * dilation - pad_begin.
struct WindowAxis {
  Dim kernel = 1;
  std::int64_t stride = 1, pad_begin = 0, pad_end = 0, dilation = 1;

  /// The number of elements from the first tap to the last.
  [[nodiscard]] Dim span() const;
};
using Window = std::vector<WindowAxis>;

enum class WindowEnd : std::uint8_t {
  inside,   ///< windows end within the padded input
  partial,  ///< the last may go beyond it, if it begins before the padding at the end
};

/// The window of a call by its attributes strides, pads (all begins, then all ends) and, if the card has it,
/// dilations. An empty list means 1 (strides, dilations) or 0 (pads) for every axis.
[[nodiscard]] Result<Window> window_of(const CallInfo& call, std::span<const Dim> kernel);

/// The sizes behind batch and channels.
[[nodiscard]] std::span<const Dim> spatial(const Shape& shape);

/// Fails, naming the input, unless a type is [batch, channels, 1 to 3 spatial axes].
[[nodiscard]] Result<void> check_spatial_rank(const CallInfo& call, std::size_t input);

/// How many positions the window has along each spatial axis of a type; `name` is what errors call it.
[[nodiscard]] Result<Shape> window_positions(const CallInfo& call, const Window& window,
                                             const ValueType& type, std::string_view name,
                                             WindowEnd end = WindowEnd::inside);

/// One axis on numbers.
struct SlidingAxis {
  std::int64_t size = 1, kernel = 1, positions = 1, stride = 1, pad = 0, dilation = 1;
};

struct Sliding {
  std::vector<SlidingAxis> axes;
  std::int64_t size = 1, taps = 1, positions = 1;  ///< products over the axes

  /// REQUIRES numbers; `shape` and `positions` are whole shapes, with batch and channels.
  static Sliding of(const Window& window, const Extents& shape, const Extents& positions);

  /// For tap `tap` and the positions [begin, end), both counted row-major over the axes: calls
  /// `f(at, from, stride, count)` for each run of positions, `at` counted from begin, that see the elements
  /// from, from + stride, … of the input. Positions that see padding are in no run.
  template <class F>
  void for_each_run(std::int64_t tap, std::int64_t begin, std::int64_t end, F&& f) const;

 private:
  /// The offset that a row of positions along the last axis adds, or -1 if it sees padding only.
  [[nodiscard]] std::int64_t row_offset(std::int64_t row, const Extents& shift) const;
};

template <class F>
void Sliding::for_each_run(std::int64_t tap, std::int64_t begin, std::int64_t end, F&& f) const {
  if (begin >= end) return;
  Extents shift(axes.size(), 0);
  for (std::size_t i = axes.size(); i-- > 0; tap /= axes[i].kernel)
    shift[i] = tap % axes[i].kernel * axes[i].dilation - axes[i].pad;
  const SlidingAxis& last = axes.back();
  const std::int64_t from = shift.back(), room = last.size - 1 - from;
  const std::int64_t low = from >= 0 ? 0 : (-from + last.stride - 1) / last.stride;
  const std::int64_t high = room < 0 ? 0 : std::min(room / last.stride + 1, last.positions);
  for (std::int64_t row = begin / last.positions; row * last.positions < end; ++row) {
    const std::int64_t offset = row_offset(row, shift), row_begin = row * last.positions;
    const std::int64_t first = std::max(low, begin - row_begin), stop = std::min(high, end - row_begin);
    if (offset < 0 || first >= stop) continue;
    f(row_begin + first - begin, offset + first * last.stride + from, last.stride, stop - first);
  }
}

}  // namespace tessera::op
