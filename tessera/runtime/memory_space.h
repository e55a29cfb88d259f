// Memory that the host cannot touch through its addresses: that of a GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "tessera/base/result.h"

namespace tessera::runtime {

/// Where libraries that share memory say that it is: type and number of a device in the DLPack standard.
struct MemoryLocation {
  std::int32_t type = 0;
  std::int32_t number = 0;

  bool operator==(const MemoryLocation&) const = default;
};

/// A stream of a device, by the handle that its own library has for it.
using StreamHandle = std::intptr_t;

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

  /// Nothing: other libraries know no such memory, and what follows is not called.
  [[nodiscard]] virtual std::optional<MemoryLocation> location() const { return std::nullopt; }
  /// Fails, saying what it is, if an address is none of this memory.
  [[nodiscard]] virtual Result<void> check_address(const std::byte* at) const;
  /// What is launched from now on comes behind what another stream has been given. The host does not wait.
  [[nodiscard]] virtual Result<void> come_behind(StreamHandle stream);
  /// What another stream is given from now on comes behind what was launched. The host does not wait.
  [[nodiscard]] virtual Result<void> come_before(StreamHandle stream);
  /// Waits on the host until all that was launched is done, if it is not.
  [[nodiscard]] virtual Result<void> finish() { return {}; }
};

}  // namespace tessera::runtime
