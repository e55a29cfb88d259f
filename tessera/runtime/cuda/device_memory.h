// Memory of a GPU. What is given back is kept for the next who asks for about as much, so that a steady loop
// sees the same addresses and never waits for the driver.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "tessera/runtime/cuda/context.h"
#include "tessera/runtime/memory_limit.h"
#include "tessera/runtime/memory_space.h"

namespace tessera::runtime::cuda {

/// The driver's form of an address in a buffer.
[[nodiscard]] inline CUdeviceptr device_address(const std::byte* at) {
  return static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(at));
}

/// Memory of the host that the device reads and writes by itself: a copy is queued, and nobody waits for it.
class PinnedMemory {
 public:
  [[nodiscard]] static Result<std::shared_ptr<const PinnedMemory>> create(ContextRef context,
                                                                          std::size_t bytes);
  ~PinnedMemory();
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  [[nodiscard]] void* data() const { return data_; }

 private:
  PinnedMemory(ContextRef context, void* data) : context_(std::move(context)), data_(data) {}

  ContextRef context_;
  void* data_;
};

/// All work that uses the memory is queued on one stream: what comes back may be handed out again before the
/// work of its last user is done.
class DeviceMemory final : public MemorySpace, public LimitedMemory {
 public:
  DeviceMemory(ContextRef context, std::shared_ptr<const Stream> stream);
  ~DeviceMemory() override;
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  /// Any number of bytes, also none. If the driver has no more, what is kept goes back to it first.
  [[nodiscard]] Result<std::byte*> allocate(std::size_t bytes) override;
  /// `bytes` as it was asked for.
  void free(std::byte* memory, std::size_t bytes) noexcept override;

  [[nodiscard]] std::uint64_t total_bytes() const override { return context_->memory_bytes(); }

  [[nodiscard]] Result<void> copy_in(std::byte* to, std::span<const std::byte> from) override;
  [[nodiscard]] Result<void> copy_out(const std::byte* from, std::span<std::byte> to) override;
  [[nodiscard]] Result<void> clear(std::byte* at, std::size_t bytes) override;

  [[nodiscard]] std::optional<MemoryLocation> location() const override;
  [[nodiscard]] Result<void> check_address(const std::byte* at) const override;
  /// Streams that are being captured are refused: nothing that they are given runs now.
  [[nodiscard]] Result<void> come_behind(StreamHandle stream) override;
  [[nodiscard]] Result<void> come_before(StreamHandle stream) override;
  [[nodiscard]] Result<void> finish() override;

  /// Gives everything that nobody uses back to the driver.
  void trim() noexcept;
  /// Bytes that nobody uses.
  [[nodiscard]] std::uint64_t kept_bytes() const;

  /// How many bytes are taken for some: a few sizes, so that others can use them too. At most an eighth more,
  /// or 512. Saturates.
  [[nodiscard]] static std::size_t class_of(std::size_t bytes);

 private:
  [[nodiscard]] std::byte* take_kept(std::size_t size);
  [[nodiscard]] Result<void> order(CUstream first, CUstream second) const;

  ContextRef context_;
  std::shared_ptr<const Stream> stream_;
  std::uint64_t most_kept_;
  mutable std::mutex mutex_;
  std::map<std::size_t, std::vector<std::byte*>> kept_;  ///< by class; the last given back is used first
  std::uint64_t kept_bytes_ = 0;
};

}  // namespace tessera::runtime::cuda
