#include "tessera/op/array.h"

#include "tessera/base/checked.h"
#include "tessera/base/text.h"
#include "tessera/op/wide.h"

using namespace tessera;
using namespace tessera::op;

bool Layout::is_contiguous() const {
  if (element_count(shape) == 0) return true;
  std::int64_t expected = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (shape[i] != 1 && strides[i] != expected) return false;
    expected *= shape[i];
  }
  return true;
}

Layout tessera::op::contiguous(const Extents& shape) {
  Layout out{shape, Extents(shape.size(), 1), 0};
  if (element_count(shape) == 0) return out;  // the other sizes may be enormous
  for (std::size_t i = shape.size(); i-- > 1;) out.strides[i - 1] = out.strides[i] * shape[i];
  return out;
}

std::int64_t tessera::op::element_count(const Extents& shape) {
  const auto count = checked_product(shape);
  TESSERA_CHECK(count.has_value(), "the number of elements overflows");
  return *count;
}

Result<HostTensor> HostTensor::allocate(Dtype dtype, Extents shape) {
  for (const std::int64_t size : shape)
    if (size < 0)
      return Error(ErrorCode::invalid_argument,
                   cat("a tensor of shape [", join(shape, ", "), "] has the size ", size));
  const auto count = checked_product(shape);
  const auto bytes =
      count ? checked_mul<std::int64_t>(*count, static_cast<std::int64_t>(ir::size_of(dtype))) : std::nullopt;
  if (!bytes || *bytes > (std::int64_t{1} << 46))
    return Error(ErrorCode::memory, cat("a tensor of shape [", join(shape, ", "), "] is too large"));
  HostTensor out;
  try {
    MemoryBlock block = allocate_block(static_cast<std::size_t>(std::max<std::int64_t>(*bytes, 1)));
    std::memset(block.get(), 0, static_cast<std::size_t>(*bytes));
    out.array_ = {dtype, contiguous(shape), block.get()};
    out.memory_ = std::shared_ptr<std::byte>(block.release(), FreeMemory());
  } catch (const std::bad_alloc&) {
    return Error(ErrorCode::memory, cat("no memory for a tensor of ", *bytes, " bytes"));
  }
  return out;
}

HostTensor HostTensor::wrap(Dtype dtype, Extents shape, const std::byte* data,
                            std::shared_ptr<const void> owner) {
  HostTensor out;
  auto* const bytes = const_cast<std::byte*>(data);  // arrays are read and written by one type
  out.array_ = {dtype, contiguous(shape), bytes};
  out.memory_ = std::shared_ptr<std::byte>(bytes, [owner = std::move(owner)](std::byte*) {});
  return out;
}

Layout tessera::op::part_of(Layout layout, std::size_t axis, std::int64_t start, std::int64_t count,
                            std::int64_t step) {
  // Without elements the start may lie outside, with one the step may be of any size.
  if (count > 0) layout.offset += start * layout.strides[axis];
  if (count > 1) layout.strides[axis] *= step;
  layout.shape[axis] = count;
  return layout;
}

Layout tessera::op::broadcast_layout(const Layout& from, const Extents& shape) {
  TESSERA_CHECK(from.rank() <= shape.size(), "broadcasting cannot lower the rank");
  Layout out{shape, Extents(shape.size(), 0), from.offset};
  const std::size_t lead = shape.size() - from.rank();
  for (std::size_t i = 0; i < from.rank(); ++i)
    out.strides[lead + i] = from.shape[i] == 1 && shape[lead + i] != 1 ? 0 : from.strides[i];
  return out;
}

namespace {

/// The last axis of a copy. Steps are in elements.
struct Line {
  std::int64_t count = 0, from_step = 1, to_step = 1;
};

template <std::size_t bytes>
void copy_line(const Line& line, const std::byte* from, std::byte* to) {
  constexpr auto size = static_cast<std::int64_t>(bytes);
  if (line.from_step == 1 && line.to_step == 1) {
    std::memmove(to, from, bytes * static_cast<std::size_t>(line.count));
    return;
  }
  for (std::int64_t i = 0; i < line.count; ++i)
    std::memcpy(to + i * line.to_step * size, from + i * line.from_step * size, bytes);
}

Layout without_last_axis(Layout layout) {
  layout.shape.pop_back();
  layout.strides.pop_back();
  return layout;
}

/// Two layouts of one shape.
struct LayoutPair {
  Layout from, to;
};

/// The same pairs of elements over as few axes as can be, one at least: lines become long.
LayoutPair with_joined_axes(const Layout& from, const Layout& to) {
  LayoutPair out{{{}, {}, from.offset}, {{}, {}, to.offset}};
  const auto add = [](Layout& layout, std::int64_t size, std::int64_t stride) {
    layout.shape.push_back(size);
    layout.strides.push_back(stride);
  };
  const auto goes_on = [](const Layout& layout, std::int64_t size, std::int64_t stride) {
    return layout.strides.back() == size * stride;
  };
  const auto join = [](Layout& layout, std::int64_t size, std::int64_t stride) {
    layout.shape.back() *= size;
    layout.strides.back() = stride;
  };
  for (std::size_t i = 0; i < to.rank(); ++i) {
    const std::int64_t size = to.shape[i];
    if (size == 1) continue;
    const bool is_joined =
        out.to.rank() > 0 && goes_on(out.from, size, from.strides[i]) && goes_on(out.to, size, to.strides[i]);
    (is_joined ? join(out.from, size, from.strides[i]) : add(out.from, size, from.strides[i]));
    (is_joined ? join(out.to, size, to.strides[i]) : add(out.to, size, to.strides[i]));
  }
  if (out.to.rank() == 0) add(out.from, 1, 1), add(out.to, 1, 1);
  return out;
}

template <std::size_t bytes>
void copy_lines(const Array& from, const Array& to) {
  if (to.size() == 0) return;
  const auto [from_axes, to_axes] = with_joined_axes(from.layout, to.layout);
  const Line line{to_axes.shape.back(), from_axes.strides.back(), to_axes.strides.back()};
  const Layout source = without_last_axis(from_axes), target = without_last_axis(to_axes);
  for_each_offset<2>(target.shape, {&source, &target}, [&](const auto& at) {
    constexpr auto size = static_cast<std::int64_t>(bytes);
    copy_line<bytes>(line, from.data + at[0] * size, to.data + at[1] * size);
  });
}

void copy_lines(const Array& from, const Array& to, std::size_t bytes) {
  switch (bytes) {
    case 1:
      return copy_lines<1>(from, to);
    case 2:
      return copy_lines<2>(from, to);
    case 4:
      return copy_lines<4>(from, to);
    default:
      TESSERA_CHECK(bytes == 8, "an element has 1, 2, 4 or 8 bytes");
      return copy_lines<8>(from, to);
  }
}

}  // namespace

void tessera::op::copy_elements(const Array& from, const Array& to) {
  if (from.dtype == to.dtype) {
    if (from.data == to.data && from.layout == to.layout) return;  // computed in place
    const std::size_t bytes = ir::size_of(from.dtype);
    if (from.layout.is_contiguous() && to.layout.is_contiguous()) {
      const auto at = [&](const Array& a) {
        return a.data + a.layout.offset * static_cast<std::int64_t>(bytes);
      };
      if (from.size() > 0) std::memmove(at(to), at(from), bytes * static_cast<std::size_t>(from.size()));
      return;
    }
    return copy_lines(from, to, bytes);
  }
  visit_wide(from.dtype, [&]<class W>(W*) {
    const auto load = loader<W>(from.dtype);
    const auto store = storer<W>(to.dtype);
    for_each_offset<2>(to.shape(), {&from.layout, &to.layout}, [&](const auto& at) {
      W value{};
      load(from.data, at[0], 1, 1, &value);
      store(to.data, at[1], 1, 1, &value);
    });
  });
}

void tessera::op::fill_elements(const Array& to, const Array& from, std::int64_t from_offset) {
  const Layout one{to.shape(), Extents(to.rank(), 0), from_offset};
  copy_elements({from.dtype, one, from.data}, to);
}
