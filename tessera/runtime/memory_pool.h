// Where memory comes from: the system, functions of the embedding program, or a device; with a limit and
// figures.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>

#include "tessera/base/large_pages.h"
#include "tessera/base/result.h"
#include "tessera/runtime/buffer.h"
#include "tessera/runtime/memory_space.h"

namespace tessera::runtime {

/// The allocator of an embedding program, for host memory. Memory is aligned to 64 bytes; null means that
/// there is none.
struct AllocatorCallbacks {
  std::function<void*(std::size_t bytes)> allocate;
  std::function<void(void* memory, std::size_t bytes)> free;
};

struct MemoryFigures {
  std::uint64_t used = 0;     ///< bytes in buffers now
  std::uint64_t kept = 0;     ///< bytes of large buffers that are gone, for the next of their size
  std::uint64_t derived = 0;  ///< bytes derived from buffers and constants (derived.h); give way to buffers
  std::uint64_t peak = 0;     ///< the most that ever were in buffers
  std::uint64_t limit = 0;    ///< what may be used and derived
  std::uint64_t allocations = 0;
};

/// Thread-safe. Lives until its last buffer is gone. Large host memory of the system's is kept for the next
/// buffer of its size: fresh pages cost more than what most ops do with them. What is kept and what is used
/// are together never more than what was used at most (rounded up to pages).
class MemoryPool : public std::enable_shared_from_this<MemoryPool> {
 public:
  /// With a space, memory is the device's, and the callbacks are not asked.
  static std::shared_ptr<MemoryPool> create(AllocatorCallbacks callbacks = {},
                                            std::shared_ptr<MemorySpace> space = nullptr) {
    return std::shared_ptr<MemoryPool>(new MemoryPool(std::move(callbacks), std::move(space)));
  }
  /// Null: host memory.
  [[nodiscard]] MemorySpace* space() const { return space_.get(); }

  /// Uninitialised memory. Fails with both figures if the limit would be passed, or if there is no memory.
  [[nodiscard]] Result<Ref<Buffer>> allocate(std::size_t bytes);

  void set_limit(std::uint64_t bytes) { limit_.store(bytes); }
  /// What was derived for the owner of this pool. Never null.
  [[nodiscard]] const std::shared_ptr<DerivedMemory>& derived() const { return derived_; }
  [[nodiscard]] MemoryFigures figures() const;

 private:
  friend class Buffer;
  friend class DerivedSet;
  MemoryPool(AllocatorCallbacks callbacks, std::shared_ptr<MemorySpace> space)
      : callbacks_(std::move(callbacks)), space_(std::move(space)) {}
  [[nodiscard]] Result<std::byte*> raw_memory(std::size_t bytes);
  /// The same from the system, without what is kept.
  [[nodiscard]] std::byte* fresh_memory(std::size_t bytes) noexcept;
  /// Counts so many derived bytes, if the limit has room for them or can be given room by what rests.
  [[nodiscard]] bool reserve_derived(std::size_t bytes);
  void give_back(std::byte* memory, std::size_t bytes) noexcept;
  [[nodiscard]] bool keeps(std::size_t bytes) const;
  /// A kept block for so many bytes; null if there is none.
  [[nodiscard]] std::byte* take_kept(std::size_t bytes) noexcept;
  /// Whether it was kept.
  [[nodiscard]] bool keep(std::byte* memory, std::size_t bytes) noexcept;
  void drop_kept() noexcept;

  AllocatorCallbacks callbacks_;
  std::shared_ptr<MemorySpace> space_;
  std::shared_ptr<DerivedMemory> derived_ = std::make_shared<DerivedMemory>();
  std::atomic<std::uint64_t> used_{0};
  std::atomic<std::uint64_t> peak_{0};
  std::atomic<std::uint64_t> limit_{std::numeric_limits<std::uint64_t>::max()};
  std::atomic<std::uint64_t> allocations_{0};

  struct KeptBlock {
    MemoryBlock memory;
    std::size_t bytes = 0;  ///< whole large pages
  };
  std::mutex kept_mutex_;
  std::array<KeptBlock, 16> kept_;  ///< where there is memory
  std::atomic<std::uint64_t> kept_bytes_{0};
};

}  // namespace tessera::runtime
