#include "tessera/op/wide_buffer.h"

#include <algorithm>
#include <new>

#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::op;

namespace {

/// Calls `f(offset, stride, count, done)` for each row along the last axis; a contiguous array is one row.
template <class F>
void for_each_line(const Array& array, F&& f) {
  if (array.size() == 0) return;
  if (array.rank() == 0 || array.layout.is_contiguous()) {
    f(array.layout.offset, 1, array.size(), 0);
    return;
  }
  Layout rows = array.layout;
  const std::int64_t length = rows.shape.back(), stride = rows.strides.back();
  rows.shape.pop_back();
  rows.strides.pop_back();
  std::int64_t done = 0;
  for_each_offset<1>(rows.shape, {&rows}, [&](const auto& at) {
    f(at[0], stride, length, done);
    done += length;
  });
}

}  // namespace

template <class W>
Result<WideBuffer<W>> WideBuffer<W>::zeros(std::int64_t count) {
  WideBuffer out;
  const auto bytes = static_cast<std::size_t>(count) * sizeof(W);
  try {
    if (count > std::int64_t{1} << 46) throw std::bad_alloc();
    out.memory_ = allocate_block(std::max<std::size_t>(bytes, 1));
  } catch (const std::bad_alloc&) {
    return Error(ErrorCode::memory, cat("no memory for ", count, " elements in a wide type"));
  }
  out.size_ = count;
  std::uninitialized_fill_n(out.data(), count, W(0));
  return out;
}

template <class W>
Result<WideBuffer<W>> WideBuffer<W>::load(const Array& from) {
  WideBuffer out = TESSERA_TRY(zeros(from.size()));
  const auto load = loader<W>(from.dtype);
  for_each_line(from, [&](std::int64_t offset, std::int64_t stride, std::int64_t count, std::int64_t done) {
    load(from.data, offset, stride, static_cast<std::size_t>(count), out.data() + done);
  });
  return out;
}

template <class W>
void WideBuffer<W>::store(const Array& to) const {
  TESSERA_CHECK(to.size() == size_, "a buffer is stored to a tensor of another size");
  const auto store = storer<W>(to.dtype);
  for_each_line(to, [&](std::int64_t offset, std::int64_t stride, std::int64_t count, std::int64_t done) {
    store(to.data, offset, stride, static_cast<std::size_t>(count), data() + done);
  });
}

template class tessera::op::WideBuffer<double>;
template class tessera::op::WideBuffer<SignedWide>;
template class tessera::op::WideBuffer<UnsignedWide>;
