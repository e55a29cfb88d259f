// An arena hands out memory that is freed all at once. For the working data of one run of an algorithm, where
// millions of small objects have the same life.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "tessera/base/large_pages.h"

namespace tessera {

/// Not thread-safe. What it hands out stays where it is until the arena is cleared or destroyed.
class Arena {
 public:
  explicit Arena(std::size_t block_bytes = 64 * 1024) : block_bytes_(block_bytes) {}
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// `bytes` of uninitialised memory. REQUIRES alignment is a power of two of at most 64.
  void* allocate(std::size_t bytes, std::size_t alignment) {
    std::byte* at = align(cursor_, alignment);
    if (at == nullptr || bytes > static_cast<std::size_t>(limit_ - at))
      return allocate_slow(bytes, alignment);
    cursor_ = at + bytes;
    return at;
  }
  /// `count` value-initialised objects. They are never destroyed, so T must not need it.
  template <class T>
  requires std::is_trivially_destructible_v<T> std::span<T> make_array(std::size_t count) {
    if (count == 0) return {};
    T* first = static_cast<T*>(allocate(count * sizeof(T), alignof(T)));
    std::uninitialized_value_construct_n(first, count);
    return {first, count};
  }

  /// Bytes taken from the system.
  [[nodiscard]] std::size_t reserved_bytes() const { return reserved_bytes_; }
  /// Forgets everything handed out and gives the memory back.
  void clear();

 private:
  static std::byte* align(std::byte* at, std::size_t alignment) {
    const auto address = reinterpret_cast<std::uintptr_t>(at);
    return at == nullptr ? nullptr : at + ((alignment - address % alignment) % alignment);
  }
  void* allocate_slow(std::size_t bytes, std::size_t alignment);

  std::size_t block_bytes_;
  std::size_t reserved_bytes_ = 0;
  std::vector<MemoryBlock> blocks_;
  std::byte* cursor_ = nullptr;
  std::byte* limit_ = nullptr;
};

}  // namespace tessera
