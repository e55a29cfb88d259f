// Memory on a device, shared by the values that live in it.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>

#include "tessera/base/ref.h"
#include "tessera/runtime/derived.h"

namespace tessera::runtime {

class MemoryPool;
class MemorySpace;

/// Counted; any thread may hold and release it. Who writes into it makes sure that nobody reads.
class Buffer {
 public:
  /// Memory of the caller, handed back by `release` when nobody uses it any more. An exception of `release`
  /// is swallowed: there is nobody left to tell.
  static Ref<Buffer> wrap(void* data, std::size_t bytes, std::function<void()> release);
  /// The same of memory of a device.
  static Ref<Buffer> wrap_in(std::shared_ptr<MemorySpace> space, void* data, std::size_t bytes,
                             std::function<void()> release);
  /// The same of memory that nobody writes to while it is wrapped.
  static Ref<Buffer> wrap_constant(const void* data, std::size_t bytes, std::function<void()> release);

  /// An address of the space that it is in.
  [[nodiscard]] std::byte* data() const { return data_; }
  /// Where it is; null in host memory.
  [[nodiscard]] MemorySpace* space() const;
  [[nodiscard]] bool is_host() const { return space() == nullptr; }
  [[nodiscard]] std::size_t size() const { return bytes_; }
  /// Whether only one place holds it. True stays true as long as that place does not hand it on.
  [[nodiscard]] bool unique() const { return refs_.load(std::memory_order_acquire) == 1; }
  /// Whether it came from a pool, and not from the caller.
  [[nodiscard]] bool owned() const { return pool_ != nullptr; }
  /// Whether version() tells when the contents change: the owner of other memory may write at any time.
  [[nodiscard]] bool tells_changes() const { return owned() || is_constant_; }

  /// The number of its contents, another after each begin_write(). No other contents of any buffer have it
  /// or had it: memory, and buffers, come again at the same address.
  [[nodiscard]] std::uint64_t version() const { return version_.load(std::memory_order_acquire); }
  /// To be called before the contents change: what was derived from them goes.
  void begin_write() const;
  /// What was derived from the contents.
  [[nodiscard]] DerivedSet& derived() const { return derived_; }

  void retain() const { refs_.fetch_add(1, std::memory_order_relaxed); }
  void release() const {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

 private:
  friend class MemoryPool;
  Buffer(std::byte* data, std::size_t bytes);
  ~Buffer();

  mutable std::atomic<std::uint32_t> refs_{0};
  std::byte* data_;
  std::size_t bytes_;
  bool is_constant_ = false;
  std::shared_ptr<MemoryPool> pool_;
  std::shared_ptr<MemorySpace> space_;  ///< of memory that is wrapped; null: the host's
  std::function<void()> release_;
  mutable std::atomic<std::uint64_t> version_;
  mutable DerivedSet derived_;
};

}  // namespace tessera::runtime
