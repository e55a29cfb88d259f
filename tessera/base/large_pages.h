// Memory in large pages, where the system has them: a table or a graph of many megabytes that is used in
// random order spends more time on address translation than on anything else when its pages are small.
#pragma once

#include <cstddef>
#include <memory>

namespace tessera {

inline constexpr std::size_t large_page_bytes = std::size_t{2} << 20;

struct FreeMemory {
  void operator()(std::byte* memory) const noexcept;
};
using MemoryBlock = std::unique_ptr<std::byte[], FreeMemory>;

/// `bytes` of uninitialised memory, aligned to 64; from large_page_bytes on aligned to that and asked to be
/// in large pages. Throws std::bad_alloc.
[[nodiscard]] MemoryBlock allocate_block(std::size_t bytes);

}  // namespace tessera
