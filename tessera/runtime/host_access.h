// How the host reads and writes buffers, wherever their memory is.
#pragma once

#include "tessera/runtime/storage.h"

namespace tessera::runtime {

/// The elements of a stored tensor row by row, where the host can read them: in the buffer itself, or in a
/// copy that is kept with it. They stay as long as the buffer lives and nobody writes to it.
/// REQUIRES that elements in host memory lie row by row.
[[nodiscard]] Result<std::span<const std::byte>> host_elements(const Storage& storage, ir::Dtype dtype);

/// One element, `offset` elements behind the beginning of the buffer.
[[nodiscard]] Result<void> read_element(const Buffer& buffer, std::int64_t offset, std::span<std::byte> out);

/// Into a buffer that nobody reads yet, from its beginning.
[[nodiscard]] Result<void> write_bytes(const Buffer& buffer, std::span<const std::byte> bytes);

/// Sets all of it to 0.
[[nodiscard]] Result<void> clear(const Buffer& buffer);

/// A buffer of `pool` with the elements of an array that lies in host memory.
[[nodiscard]] Result<Storage> copy_of(const op::Array& elements, MemoryPool& pool);

}  // namespace tessera::runtime
