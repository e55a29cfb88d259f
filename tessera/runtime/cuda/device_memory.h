// Memory of a GPU. What is given back is kept for the next who asks for about as much, so that a steady loop
// sees the same addresses and never waits for the driver.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "tessera/runtime/cuda/context.h"
#include "tessera/runtime/memory_pool.h"

namespace tessera::runtime::cuda {

/// Thread-safe. All work that uses the memory is queued on one stream: what comes back may be handed out
/// again before the work of its last user is done.
class DeviceMemory : public std::enable_shared_from_this<DeviceMemory> {
 public:
  explicit DeviceMemory(ContextRef context);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  /// Aligned to 256, uninitialised; any number of bytes, also none. If the driver has no more, what is kept
  /// goes back to it first; the error has what was asked for and what there is.
  [[nodiscard]] Result<CUdeviceptr> allocate(std::size_t bytes);
  /// `bytes` as it was asked for.
  void give_back(CUdeviceptr memory, std::size_t bytes) noexcept;
  /// Gives everything that nobody uses back to the driver.
  void trim() noexcept;
  /// Bytes that nobody uses.
  [[nodiscard]] std::uint64_t kept_bytes() const;

  /// A pool whose buffers lie here. It keeps this alive.
  [[nodiscard]] std::shared_ptr<MemoryPool> make_pool();

  /// How many bytes are taken for some: a few sizes, so that others can use them too. At most an eighth more,
  /// or 512. Saturates.
  [[nodiscard]] static std::size_t class_of(std::size_t bytes);

 private:
  [[nodiscard]] CUdeviceptr take_kept(std::size_t size);

  ContextRef context_;
  std::uint64_t most_kept_;
  mutable std::mutex mutex_;
  std::map<std::size_t, std::vector<CUdeviceptr>> kept_;  ///< by class; the last given back is used first
  std::uint64_t kept_bytes_ = 0;
};

/// Memory that is given back at the end.
class DeviceBlock {
 public:
  DeviceBlock() = default;
  [[nodiscard]] static Result<DeviceBlock> allocate(std::shared_ptr<DeviceMemory> memory, std::size_t bytes);
  DeviceBlock(DeviceBlock&& other) noexcept { *this = std::move(other); }
  DeviceBlock& operator=(DeviceBlock&& other) noexcept;
  ~DeviceBlock();

  [[nodiscard]] CUdeviceptr at() const { return at_; }
  [[nodiscard]] std::size_t size() const { return bytes_; }

 private:
  std::shared_ptr<DeviceMemory> memory_;
  CUdeviceptr at_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace tessera::runtime::cuda
