#include "tessera/runtime/host_access.h"

#include <algorithm>
#include <cstring>

#include "tessera/base/check.h"
#include "tessera/runtime/memory_pool.h"

using namespace tessera;
using namespace tessera::runtime;

namespace {

/// The elements of one view of a buffer, on the host.
struct HostCopy final : Derived {
  op::Layout layout;
  ir::Dtype dtype = ir::Dtype::u8;
  op::HostTensor elements;

  [[nodiscard]] std::size_t byte_size() const override { return elements.byte_size(); }
  [[nodiscard]] bool is_of(const Storage& storage, ir::Dtype wanted) const {
    return dtype == wanted && layout == storage.layout;
  }
};

/// The first and the last element of a layout that has some, counted from the beginning of the buffer.
std::pair<std::int64_t, std::int64_t> range_of(const op::Layout& layout) {
  std::int64_t first = layout.offset, last = layout.offset;
  for (std::size_t axis = 0; axis < layout.rank(); ++axis) {
    const std::int64_t reach = (layout.shape[axis] - 1) * layout.strides[axis];
    (reach < 0 ? first : last) += reach;
  }
  return {first, last};
}

/// What a view spans comes over as a whole and is put in order here.
Result<op::HostTensor> copied_out(const Storage& storage, ir::Dtype dtype) {
  auto out = TESSERA_TRY(op::HostTensor::allocate(dtype, storage.layout.shape));
  if (op::element_count(storage.layout.shape) == 0) return out;
  const auto width = static_cast<std::int64_t>(ir::size_of(dtype));
  const auto [first, last] = range_of(storage.layout);
  const std::byte* from = storage.buffer->data() + first * width;
  MemorySpace& space = *storage.buffer->space();
  const auto bytes = static_cast<std::size_t>((last - first + 1) * width);
  if (storage.layout.is_contiguous()) {
    TESSERA_TRY(space.copy_out(from, {out.array().data, bytes}));
    return out;
  }
  const auto span = TESSERA_TRY(op::HostTensor::allocate(dtype, {last - first + 1}));
  TESSERA_TRY(space.copy_out(from, {span.array().data, bytes}));
  op::Layout layout = storage.layout;
  layout.offset -= first;
  op::copy_elements({dtype, layout, span.array().data}, out.array());
  return out;
}

std::span<const std::byte> bytes_of(const op::HostTensor& tensor) {
  return {tensor.array().data, tensor.byte_size()};
}

}  // namespace

Result<std::span<const std::byte>> tessera::runtime::host_elements(const Storage& storage, ir::Dtype dtype) {
  const Buffer& buffer = *storage.buffer;
  const auto width = static_cast<std::int64_t>(ir::size_of(dtype));
  if (buffer.is_host()) {
    TESSERA_CHECK(storage.layout.is_contiguous(), "host elements of a view");
    const std::int64_t count = op::element_count(storage.layout.shape);
    return std::span<const std::byte>(buffer.data() + storage.layout.offset * width,
                                      static_cast<std::size_t>(count * width));
  }
  DerivedSet& known = buffer.derived();
  const auto is_of = [&](const HostCopy& copy) { return copy.is_of(storage, dtype); };
  if (const auto found = known.find<HostCopy>(is_of)) return bytes_of(found->elements);
  auto copy = std::make_shared<HostCopy>();
  copy->layout = storage.layout;
  copy->dtype = dtype;
  copy->elements = TESSERA_TRY(copied_out(storage, dtype));
  known.hand_out(copy);
  return bytes_of(copy->elements);
}

Result<void> tessera::runtime::read_element(const Buffer& buffer, std::int64_t offset,
                                            std::span<std::byte> out) {
  const std::byte* at = buffer.data() + offset * static_cast<std::int64_t>(out.size());
  if (!buffer.is_host()) return buffer.space()->copy_out(at, out);
  std::copy_n(at, out.size(), out.data());
  return {};
}

Result<void> tessera::runtime::write_bytes(const Buffer& buffer, std::span<const std::byte> bytes) {
  if (bytes.empty()) return {};
  if (!buffer.is_host()) return buffer.space()->copy_in(buffer.data(), bytes);
  std::memcpy(buffer.data(), bytes.data(), bytes.size());
  return {};
}

Result<void> tessera::runtime::clear(const Buffer& buffer) {
  if (!buffer.is_host()) return buffer.space()->clear(buffer.data(), buffer.size());
  std::fill_n(buffer.data(), buffer.size(), std::byte{0});
  return {};
}

Result<Storage> tessera::runtime::copy_of(const op::Array& elements, MemoryPool& pool) {
  op::HostTensor in_order;
  const op::Array* from = &elements;
  if (!elements.layout.is_contiguous()) {
    in_order = TESSERA_TRY(op::HostTensor::allocate(elements.dtype, elements.shape()));
    op::copy_elements(elements, in_order.array());
    from = &in_order.array();
  }
  const std::size_t width = ir::size_of(elements.dtype);
  const auto bytes = static_cast<std::size_t>(op::element_count(elements.shape())) * width;
  Storage out{TESSERA_TRY(pool.allocate(bytes)), op::contiguous(elements.shape())};
  const std::byte* first = from->data + from->layout.offset * static_cast<std::int64_t>(width);
  TESSERA_TRY(write_bytes(*out.buffer, {first, bytes}));
  return out;
}
