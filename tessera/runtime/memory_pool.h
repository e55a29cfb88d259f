// Where host memory comes from: the system, or functions of the embedding program; with a limit and figures.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>

#include "tessera/base/result.h"
#include "tessera/runtime/buffer.h"

namespace tessera::runtime {

/// The allocator of an embedding program. Memory is aligned to 64 bytes; null means that there is none.
struct AllocatorCallbacks {
  std::function<void*(std::size_t bytes)> allocate;
  std::function<void(void* memory, std::size_t bytes)> free;
};

struct MemoryFigures {
  std::uint64_t used = 0;   ///< bytes in buffers now
  std::uint64_t peak = 0;   ///< the most there ever were
  std::uint64_t limit = 0;  ///< what may be used
  std::uint64_t allocations = 0;
};

/// Thread-safe. Lives until its last buffer is gone.
class MemoryPool : public std::enable_shared_from_this<MemoryPool> {
 public:
  static std::shared_ptr<MemoryPool> create(AllocatorCallbacks callbacks = {}) {
    return std::shared_ptr<MemoryPool>(new MemoryPool(std::move(callbacks)));
  }

  /// Uninitialised memory. Fails with both figures if the limit would be passed, or if there is no memory.
  [[nodiscard]] Result<Ref<Buffer>> allocate(std::size_t bytes);

  void set_limit(std::uint64_t bytes) { limit_.store(bytes); }
  [[nodiscard]] MemoryFigures figures() const;

 private:
  friend class Buffer;
  explicit MemoryPool(AllocatorCallbacks callbacks) : callbacks_(std::move(callbacks)) {}
  void give_back(std::byte* memory, std::size_t bytes) noexcept;

  AllocatorCallbacks callbacks_;
  std::atomic<std::uint64_t> used_{0};
  std::atomic<std::uint64_t> peak_{0};
  std::atomic<std::uint64_t> limit_{std::numeric_limits<std::uint64_t>::max()};
  std::atomic<std::uint64_t> allocations_{0};
};

}  // namespace tessera::runtime
