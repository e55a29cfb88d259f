// Memory for millions of small objects that come and go: slots of one size and multiples of it, cut from
// large blocks. Objects made one after another lie one after another. A thread allocates and frees without a
// lock, except when its own stock runs out; what one thread allocated, any thread may free.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "tessera/base/forked_child.h"
#include "tessera/base/large_pages.h"

// Under the address sanitizer every object comes from the heap, so that it sees each of them.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TESSERA_SLOT_MEMORY 0
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define TESSERA_SLOT_MEMORY 0
#endif
#ifndef TESSERA_SLOT_MEMORY
#define TESSERA_SLOT_MEMORY 1
#endif

namespace tessera {

/// `slot_bytes` is the size and, if it is a power of two up to 64, the alignment of a slot; up to `max_slots`
/// adjoining slots make one object, larger ones come from the heap. Memory is kept for the next objects until
/// the process ends.
template <std::size_t slot_bytes, std::size_t max_slots>
class SlotMemory {
 public:
  static constexpr std::size_t alignment = slot_bytes % 64 == 0 ? 64 : 16;
  static_assert(slot_bytes % alignment == 0);

  [[nodiscard]] static void* allocate(std::size_t bytes) {
    const std::size_t slots = slots_for(bytes);
    if (TESSERA_SLOT_MEMORY == 0 || slots > max_slots)
      return ::operator new(bytes, std::align_val_t(alignment));
    if (Slot* slot = take(stock.free, slots)) return slot;
    if (static_cast<std::size_t>(stock.limit - stock.cursor) < slots * slot_bytes) {
      refill(slots);
      if (Slot* slot = take(stock.free, slots)) return slot;
    }
    std::byte* out = stock.cursor;
    stock.cursor += slots * slot_bytes;
    return out;
  }

  static void free(void* memory, std::size_t bytes) noexcept {
    const std::size_t slots = slots_for(bytes);
    if (TESSERA_SLOT_MEMORY == 0 || slots > max_slots)
      return ::operator delete(memory, std::align_val_t(alignment));
    give(stock.free, memory, slots);
  }

 private:
  static constexpr std::size_t first_block_bytes =
      16384;  // per thread; a small program does not pay for a large page

  struct Slot {
    Slot* next;
  };
  using FreeLists = std::array<Slot*, max_slots>;

  /// What threads that ended left behind, and all blocks ever made: they live as long as the process.
  struct Shared {
    std::mutex mutex;
    FreeLists free{};
    std::vector<MemoryBlock> blocks;
  };
  /// The free slots of one thread, and the block it cuts new ones from. Plain data: it is used until the very
  /// end of the thread, after all its destructors.
  struct Stock {
    FreeLists free{};
    std::byte* cursor = nullptr;
    std::byte* limit = nullptr;
    std::size_t block_bytes = first_block_bytes;
  };
  /// Hands the slots of a thread that ends over to the others.
  struct ThreadEnd {
    ~ThreadEnd() {
      if (is_forked_child()) return;
      const std::lock_guard lock(shared().mutex);
      for (std::size_t slots = 1; slots <= max_slots; ++slots)
        while (Slot* slot = take(stock.free, slots)) give(shared().free, slot, slots);
    }
  };

  static std::size_t slots_for(std::size_t bytes) { return (bytes + slot_bytes - 1) / slot_bytes; }

  static Slot* take(FreeLists& lists, std::size_t slots) {
    Slot* slot = lists[slots - 1];
    if (slot != nullptr) lists[slots - 1] = slot->next;
    return slot;
  }
  static void give(FreeLists& lists, void* memory, std::size_t slots) {
    auto* slot = static_cast<Slot*>(memory);
    slot->next = lists[slots - 1];
    lists[slots - 1] = slot;
  }

  static Shared& shared() {
    static auto* stock_of_all = new Shared;  // never destroyed: objects may outlive every static one
    return *stock_of_all;
  }

  /// Takes over the shared slots of this size, or makes a new block to cut from.
  static void refill(std::size_t slots) {
    (void)&thread_end;  // made by its first use
    const std::lock_guard lock(shared().mutex);
    if (shared().free[slots - 1] != nullptr) {
      std::swap(stock.free[slots - 1], shared().free[slots - 1]);
      return;
    }
    shared().blocks.push_back(allocate_block(stock.block_bytes));
    stock.cursor = shared().blocks.back().get();
    stock.limit = stock.cursor + stock.block_bytes;
    stock.block_bytes = std::min(stock.block_bytes * 4, large_page_bytes);
  }

  static inline constinit thread_local Stock stock;
  static inline thread_local ThreadEnd thread_end;
};

}  // namespace tessera
