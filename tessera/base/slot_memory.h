// Memory for millions of small objects that come and go, in slots of multiples of 16 bytes. Objects made one
// after another lie one after another. A thread takes and gives without a lock; what one took, any may give.
//
// A thread has at most two batches of free slots of a size. Batches go to a depot of all threads and come
// from there in constant time, and so does what a thread has left when it ends: whatever threads do, memory is
// what lived at once at most, and two batches a size for each thread that is alive. It serves until the very
// end of a thread and of the process, and is kept for the next objects until then.
#pragma once

#include <array>
#include <cstddef>
#include <new>

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

class SlotMemory {
 public:
  /// Larger objects come from the heap.
  static constexpr std::size_t max_bytes = 512;

  /// Aligned to 16 bytes; if `bytes` is a multiple of 64, to 64. Throws std::bad_alloc.
  [[nodiscard]] static void* allocate(std::size_t bytes) {
    const std::size_t size = rounded(bytes);
    if (!is_slot(size)) return ::operator new(size, heap_alignment);
    Stock& stock = stocks[size / granule];
    Slot* const slot = stock.free;
    if (slot == nullptr) [[unlikely]]
      return refill(size);
    stock.free = slot->next;
    stock.room += size;
    return slot;
  }

  /// What allocate(bytes) gave to any thread.
  static void free(void* memory, std::size_t bytes) noexcept {
    const std::size_t size = rounded(bytes);
    if (!is_slot(size)) return ::operator delete(memory, heap_alignment);
    Stock& stock = stocks[size / granule];
    if (stock.room < size) [[unlikely]]
      return overflow(memory, size);
    auto* const slot = static_cast<Slot*>(memory);
    slot->next = stock.free;
    stock.free = slot;
    stock.room -= size;
  }

 private:
  struct Slot {
    Slot* next;
    Slot* next_batch;  ///< of the first slot of a batch in the depot
  };
  /// Free slots of one size. Plain data: it is there until the very end of its thread.
  struct Stock {
    Slot* free;
    Slot* full;        ///< one batch more, or null
    std::size_t room;  ///< bytes that `free` takes yet; none before the thread is known, and after its end
  };
  struct Depot;
  struct ThreadEnd;

  static constexpr std::size_t granule = sizeof(Slot);
  static constexpr std::size_t size_count = max_bytes / granule + 1;
  static constexpr std::align_val_t heap_alignment{64};

  static constexpr std::size_t rounded(std::size_t bytes) {
    return (bytes + granule - 1) / granule * granule;
  }
  static constexpr bool is_slot(std::size_t size) { return TESSERA_SLOT_MEMORY != 0 && size <= max_bytes; }

  /// Where the thread has no free slot.
  [[nodiscard]] static void* refill(std::size_t size);
  /// Where the thread has no room for one more.
  static void overflow(void* memory, std::size_t size) noexcept;

  static Depot depot;
  static inline constinit thread_local std::array<Stock, size_count> stocks{};
};

}  // namespace tessera
