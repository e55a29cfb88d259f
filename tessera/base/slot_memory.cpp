#include "tessera/base/slot_memory.h"

#include <pthread.h>

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <type_traits>
#include <utility>

#include "tessera/base/large_pages.h"

using namespace tessera;

/// The batches that no thread has, by size, and the memory that more are cut from. Never destroyed.
struct SlotMemory::Depot {
  /// So much that threads are seldom here, so little that what idle ones have does not count.
  static constexpr std::size_t batch_bytes = 16384;

  /// Throws std::bad_alloc.
  [[nodiscard]] Slot* take(std::size_t size) {
    const std::lock_guard lock(mutex);
    Slot*& first = batches[size / granule];
    return first == nullptr ? cut(size) : std::exchange(first, first->next_batch);
  }
  void give(Slot* batch, std::size_t size) noexcept {
    if (batch == nullptr) return;
    const std::lock_guard lock(mutex);
    batch->next_batch = std::exchange(batches[size / granule], batch);
  }

  std::mutex mutex;

 private:
  // Trivially destroyed: it is there until the process is gone.
  static_assert(std::is_trivially_destructible_v<std::mutex>);

  static constexpr std::size_t first_block_bytes = 65536;

  /// What a block begins with.
  struct alignas(64) Block {
    Block* older;
  };

  /// Of a new batch: a small program touches few pages; a large one walks over what lies together.
  [[nodiscard]] std::size_t new_bytes() const { return block_bytes < large_page_bytes ? 4096 : batch_bytes; }

  /// Slots in the order of their addresses.
  Slot* cut(std::size_t size) {
    if (static_cast<std::size_t>(limit - cursor) < batch_bytes) add_block();
    const std::size_t bytes = new_bytes();
    Slot* first = nullptr;
    for (std::byte* at = cursor + bytes / size * size; at != cursor;) {
      at -= size;
      first = new (at) Slot{first, nullptr};
    }
    cursor += bytes;
    return first;
  }
  void add_block() {
    std::byte* const memory = allocate_block(block_bytes).release();
    blocks = new (memory) Block{blocks};
    cursor = memory + sizeof(Block);
    limit = memory + block_bytes;
    block_bytes = std::min(block_bytes * 4, large_page_bytes);
  }

  std::array<Slot*, size_count> batches{};
  Block* blocks = nullptr;  ///< all, for tools that look for lost memory
  std::byte *cursor = nullptr, *limit = nullptr;
  std::size_t block_bytes = first_block_bytes;
};

constinit SlotMemory::Depot SlotMemory::depot;

/// Hands what the thread has over to the others.
struct SlotMemory::ThreadEnd {
  enum class Life : std::uint8_t { unknown, alive, ended };

  /// Whether this thread keeps slots. The first time it begins to.
  static bool is_alive() noexcept {
    if (life == Life::unknown) [[unlikely]]
      begin();
    return life == Life::alive;
  }

 private:
  static void begin() noexcept {
    // A child of a fork that happens while somebody is at the depot would wait for ever.
    static const int at_fork = pthread_atfork([] { depot.mutex.lock(); }, [] { depot.mutex.unlock(); },
                                              [] { depot.mutex.unlock(); });
    static_cast<void>(at_fork);
    thread_local const ThreadEnd end;
    static_cast<void>(end);
  }

  ThreadEnd() { life = Life::alive; }
  ~ThreadEnd() {
    life = Life::ended;
    for (std::size_t i = 0; i < size_count; ++i) {
      const Stock stock = std::exchange(stocks[i], {});
      depot.give(stock.free, i * granule);
      depot.give(stock.full, i * granule);
    }
  }

  static inline constinit thread_local Life life = Life::unknown;
};

/// A batch may be smaller than others. It is taken for a whole one: there is room for what was taken of it.
void* SlotMemory::refill(std::size_t size) {
  const bool keeps = ThreadEnd::is_alive();
  Stock& stock = stocks[size / granule];
  Slot* const first = stock.full != nullptr ? std::exchange(stock.full, nullptr) : depot.take(size);
  if (keeps) {
    stock.free = first->next;
    stock.room = size;
  } else {
    depot.give(first->next, size);
  }
  return first;
}

void SlotMemory::overflow(void* memory, std::size_t size) noexcept {
  auto* const slot = new (memory) Slot{nullptr, nullptr};
  if (!ThreadEnd::is_alive()) return depot.give(slot, size);
  Stock& stock = stocks[size / granule];
  depot.give(stock.full, size);
  stock = {.free = slot, .full = stock.free, .room = Depot::batch_bytes - size};
}
