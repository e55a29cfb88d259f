// A whole tensor in the type the reference computes in, row-major. Kernels that read an element many times
// (products, convolutions, normalisations) widen their inputs once and run plain loops over contiguous
// memory.
#pragma once

#include <cstdint>
#include <span>

#include "tessera/base/large_pages.h"
#include "tessera/base/result.h"
#include "tessera/op/array.h"
#include "tessera/op/wide.h"

namespace tessera::op {

/// Defined for double, SignedWide and UnsignedWide.
template <class W>
class WideBuffer {
 public:
  WideBuffer() = default;
  /// `count` zeros. Fails if memory cannot be had.
  static Result<WideBuffer> zeros(std::int64_t count);
  /// The elements of an array of any strides, in row-major order.
  static Result<WideBuffer> load(const Array& from);
  /// Narrows the elements into an array of any strides. REQUIRES to.size() == size().
  void store(const Array& to) const;

  [[nodiscard]] std::int64_t size() const { return size_; }
  W* data() { return reinterpret_cast<W*>(memory_.get()); }
  const W* data() const { return reinterpret_cast<const W*>(memory_.get()); }
  W& operator[](std::int64_t i) { return data()[i]; }
  const W& operator[](std::int64_t i) const { return data()[i]; }
  W* begin() { return data(); }
  W* end() { return data() + size_; }

 private:
  MemoryBlock memory_;
  std::int64_t size_ = 0;
};

}  // namespace tessera::op
