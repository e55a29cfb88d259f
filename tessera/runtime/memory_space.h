// Memory that the host cannot touch through its addresses: that of a GPU.
#pragma once

#include <cstddef>
#include <span>

#include "tessera/base/result.h"

namespace tessera::runtime {

/// Thread-safe. Copies and clears are in order with the work of the device: they see what was launched
/// before, and what is launched after sees them.
class MemorySpace {
 public:
  virtual ~MemorySpace() = default;

  /// At least aligned to 256 bytes. The error of too little memory has code `memory` and names both figures.
  [[nodiscard]] virtual Result<std::byte*> allocate(std::size_t bytes) = 0;
  /// Work that uses it may still be under way.
  virtual void free(std::byte* memory, std::size_t bytes) noexcept = 0;

  /// `from` may be given up when it returns.
  [[nodiscard]] virtual Result<void> copy_in(std::byte* to, std::span<const std::byte> from) = 0;
  /// `to` has the bytes when it returns.
  [[nodiscard]] virtual Result<void> copy_out(const std::byte* from, std::span<std::byte> to) = 0;
  /// Sets all bytes to 0.
  [[nodiscard]] virtual Result<void> clear(std::byte* at, std::size_t bytes) = 0;
};

}  // namespace tessera::runtime
