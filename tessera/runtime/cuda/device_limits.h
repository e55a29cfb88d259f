// What a device gives the kernels that are made for it. Generators learn of a device by this alone, so that
// programs for any of them can be made, and tested, without one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tessera::runtime::cuda {

/// Bytes of shared memory that a block has on every device, and without asking.
inline constexpr std::uint32_t usual_shared_bytes = 48 * 1024;

struct DeviceLimits {
  std::uint32_t shared_bytes = usual_shared_bytes;  ///< of one block, if its kernel asks for them

  bool operator==(const DeviceLimits&) const = default;
};

/// What a launch may have beside `declared_bytes`, which its kernel declares; drivers may take some, too.
[[nodiscard]] constexpr std::size_t dynamic_shared_bytes(const DeviceLimits& limits,
                                                         std::size_t declared_bytes) {
  constexpr std::size_t reserve = 1024;
  const std::size_t taken = declared_bytes + reserve;
  return limits.shared_bytes > taken ? limits.shared_bytes - taken : 0;
}

}  // namespace tessera::runtime::cuda
