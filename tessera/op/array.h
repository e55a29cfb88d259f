// Tensors in host memory, as the reference kernels see them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include "tessera/base/large_pages.h"
#include "tessera/base/result.h"
#include "tessera/base/small_vector.h"
#include "tessera/ir/dtype.h"

namespace tessera::op {

using ir::Dtype;
using Extents = SmallVector<std::int64_t, 4>;

/// How the elements of a tensor lie in a buffer: strides and offset count elements, strides may be 0 or
/// negative.
struct Layout {
  Extents shape;
  Extents strides;
  std::int64_t offset = 0;

  [[nodiscard]] std::size_t rank() const { return shape.size(); }
  [[nodiscard]] bool is_contiguous() const;
  bool operator==(const Layout&) const = default;
};

/// Row-major, without gaps.
[[nodiscard]] Layout contiguous(const Extents& shape);
/// The number of elements. REQUIRES that it fits (shapes are checked where they are made).
[[nodiscard]] std::int64_t element_count(const Extents& shape);

/// Elements in memory that somebody else owns.
struct Array {
  Dtype dtype = Dtype::f32;
  Layout layout;
  std::byte* data = nullptr;  ///< the buffer's begin; the first element is layout.offset elements behind it

  [[nodiscard]] const Extents& shape() const { return layout.shape; }
  [[nodiscard]] std::size_t rank() const { return layout.rank(); }
  [[nodiscard]] std::int64_t size() const { return element_count(layout.shape); }
  /// The element `offset` elements behind the buffer's begin.
  [[nodiscard]] std::byte* at(std::int64_t offset) const {
    return data + offset * static_cast<std::int64_t>(ir::size_of(dtype));
  }
};

/// A contiguous tensor that owns its memory. Copies share it.
class HostTensor {
 public:
  HostTensor() = default;
  /// Zero-filled. Fails if the size overflows or memory cannot be had.
  static Result<HostTensor> allocate(Dtype dtype, Extents shape);
  /// Elements that are there, row-major and aligned for `dtype`, which nobody writes to: `owner` keeps them.
  static HostTensor wrap(Dtype dtype, Extents shape, const std::byte* data,
                         std::shared_ptr<const void> owner);
  /// Copies `values` (of the C++ type that `dtype` stores) in.
  template <class T>
  static HostTensor of(Dtype dtype, Extents shape, std::span<const T> values) {
    HostTensor out = value_or_throw(allocate(dtype, std::move(shape)));
    std::copy(values.begin(), values.end(), reinterpret_cast<T*>(out.array_.data));
    return out;
  }

  [[nodiscard]] const Array& array() const { return array_; }
  /// Whether no copy shares the memory: then nobody sees what is written to it.
  [[nodiscard]] bool is_unshared() const { return memory_.use_count() == 1; }
  [[nodiscard]] Dtype dtype() const { return array_.dtype; }
  [[nodiscard]] const Extents& shape() const { return array_.layout.shape; }
  [[nodiscard]] std::int64_t size() const { return array_.size(); }
  [[nodiscard]] std::size_t byte_size() const {
    return static_cast<std::size_t>(size()) * ir::size_of(dtype());
  }
  template <class T>
  [[nodiscard]] std::span<T> values() const {
    return {reinterpret_cast<T*>(array_.data), static_cast<std::size_t>(size())};
  }

 private:
  Array array_;
  std::shared_ptr<std::byte> memory_;
};

/// Calls `f(offset per layout…)` for every element of `shape` in row-major order; offsets count elements and
/// include each layout's own offset. The layouts have the rank of `shape`.
template <std::size_t n, class F>
void for_each_offset(const Extents& shape, const std::array<const Layout*, n>& layouts, F&& f) {
  if (element_count(shape) == 0) return;
  std::array<std::int64_t, n> offsets;
  for (std::size_t k = 0; k < n; ++k) offsets[k] = layouts[k]->offset;
  Extents at(shape.size(), 0);
  for (;;) {
    f(offsets);
    std::size_t axis = shape.size();
    for (; axis > 0; --axis) {
      const std::size_t a = axis - 1;
      if (++at[a] < shape[a]) {
        for (std::size_t k = 0; k < n; ++k) offsets[k] += layouts[k]->strides[a];
        break;
      }
      for (std::size_t k = 0; k < n; ++k) offsets[k] -= layouts[k]->strides[a] * (shape[a] - 1);
      at[a] = 0;
    }
    if (axis == 0) return;
  }
}

/// Calls `f(index per axis)` for every element of `shape` in row-major order.
template <class F>
void for_each_place(const Extents& shape, F&& f) {
  if (element_count(shape) == 0) return;
  Extents at(shape.size(), 0);
  for (;;) {
    f(std::as_const(at));
    std::size_t axis = shape.size();
    while (axis > 0 && ++at[axis - 1] == shape[axis - 1]) at[--axis] = 0;
    if (axis == 0) return;
  }
}

/// The layout of `count` indices along one axis, from `start` in steps of `step`. REQUIRES that all are
/// inside.
[[nodiscard]] Layout part_of(Layout layout, std::size_t axis, std::int64_t start, std::int64_t count,
                             std::int64_t step = 1);

/// The layout of `from` seen with `shape`, by NumPy's broadcasting. REQUIRES that it can be.
[[nodiscard]] Layout broadcast_layout(const Layout& from, const Extents& shape);

/// Copies element by element; the shapes are the same, the dtypes may differ (values are converted as `cast`
/// does).
void copy_elements(const Array& from, const Array& to);
/// Copies one element, `from_offset` and `to_offset` elements behind the begins. REQUIRES the same dtype.
inline void copy_element(const Array& from, std::int64_t from_offset, const Array& to,
                         std::int64_t to_offset) {
  std::memcpy(to.at(to_offset), from.at(from_offset), ir::size_of(from.dtype));
}
/// Sets every element to the one at `from_offset`. REQUIRES the same dtype.
void fill_elements(const Array& to, const Array& from, std::int64_t from_offset);

}  // namespace tessera::op
