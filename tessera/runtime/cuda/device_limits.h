// What a device gives the kernels that are made for it. Generators learn of a device by this alone, so that
// programs for any of them can be made, and tested, without one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace tessera::runtime::cuda {

/// Bytes of shared memory that a block has on every device, and without asking.
inline constexpr std::uint32_t usual_shared_bytes = 48 * 1024;

struct DeviceLimits {
  std::uint32_t shared_bytes = usual_shared_bytes;  ///< of one block, if its kernel asks for them
  std::uint32_t multiprocessors = 1;                ///< each has that memory for all blocks that it runs

  bool operator==(const DeviceLimits&) const = default;
};

/// Bytes of its shared memory that a driver may take for every block.
inline constexpr std::size_t reserved_shared_bytes = 1024;

/// What a launch may have beside `declared_bytes`, which its kernel declares.
[[nodiscard]] constexpr std::size_t dynamic_shared_bytes(const DeviceLimits& limits,
                                                         std::size_t declared_bytes) {
  const std::size_t taken = declared_bytes + reserved_shared_bytes;
  return limits.shared_bytes > taken ? limits.shared_bytes - taken : 0;
}

/// With fewer blocks, each of so many bytes of shared memory, too much of the device has no work. Where one
/// has most of what there is, a multiprocessor runs them one after another, and all multiprocessors count.
[[nodiscard]] constexpr std::int64_t least_blocks(const DeviceLimits& limits, std::size_t block_bytes) {
  constexpr std::int64_t least_small_blocks = 64;
  const std::size_t of_two = 2 * (block_bytes + reserved_shared_bytes);
  const bool has_room_for_two = of_two <= limits.shared_bytes + reserved_shared_bytes;
  return has_room_for_two ? least_small_blocks
                          : std::max<std::int64_t>(least_small_blocks, limits.multiprocessors);
}

}  // namespace tessera::runtime::cuda
