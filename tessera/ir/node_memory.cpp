#include "tessera/ir/node_memory.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <new>
#include <vector>

#include "tessera/base/large_pages.h"

using namespace tessera;
using namespace tessera::ir;

// Under the address sanitizer every node comes from the heap, so that it sees each of them.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TESSERA_NODE_POOL 0
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define TESSERA_NODE_POOL 0
#endif
#ifndef TESSERA_NODE_POOL
#define TESSERA_NODE_POOL 1
#endif

namespace {

constexpr std::size_t max_slots = 8;              // larger nodes come from the heap
constexpr std::size_t first_block_bytes = 16384;  // per thread; a small program does not pay for a large page

struct FreeSlot {
  FreeSlot* next;
};

using FreeLists = std::array<FreeSlot*, max_slots>;

FreeSlot* take(FreeLists& lists, std::size_t slots) {
  FreeSlot* slot = lists[slots - 1];
  if (slot != nullptr) lists[slots - 1] = slot->next;
  return slot;
}

void give(FreeLists& lists, void* memory, std::size_t slots) {
  auto* slot = static_cast<FreeSlot*>(memory);
  slot->next = lists[slots - 1];
  lists[slots - 1] = slot;
}

/// What threads that ended left behind, and all blocks ever made: they live as long as the process.
struct SharedStock {
  std::mutex mutex;
  FreeLists free{};
  std::vector<MemoryBlock> blocks;
};

SharedStock& shared_stock() {
  static auto* stock = new SharedStock;  // never destroyed: nodes may outlive every static object
  return *stock;
}

/// The free slots of one thread, and the block it cuts new ones from. Plain data: it is used until the very
/// end of the thread, after all its destructors.
struct ThreadStock {
  FreeLists free{};
  std::byte* cursor = nullptr;
  std::byte* limit = nullptr;
  std::size_t block_bytes = first_block_bytes;
};
constinit thread_local ThreadStock stock;

/// Hands the slots of a thread that ends over to the others.
struct ThreadEnd {
  ~ThreadEnd() {
    SharedStock& shared = shared_stock();
    const std::lock_guard lock(shared.mutex);
    for (std::size_t slots = 1; slots <= max_slots; ++slots)
      while (FreeSlot* slot = take(stock.free, slots)) give(shared.free, slot, slots);
  }
};
thread_local ThreadEnd thread_end;

/// Takes over the shared slots of this size, or makes a new block to cut from.
void refill(std::size_t slots) {
  (void)&thread_end;  // made by its first use
  SharedStock& shared = shared_stock();
  const std::lock_guard lock(shared.mutex);
  if (shared.free[slots - 1] != nullptr) {
    std::swap(stock.free[slots - 1], shared.free[slots - 1]);
    return;
  }
  shared.blocks.push_back(allocate_block(stock.block_bytes));
  stock.cursor = shared.blocks.back().get();
  stock.limit = stock.cursor + stock.block_bytes;
  stock.block_bytes = std::min(stock.block_bytes * 4, large_page_bytes);
}

void* allocate_slots(std::size_t slots) {
  if (FreeSlot* slot = take(stock.free, slots)) return slot;
  if (static_cast<std::size_t>(stock.limit - stock.cursor) < slots * node_slot_bytes) {
    refill(slots);
    if (FreeSlot* slot = take(stock.free, slots)) return slot;
  }
  std::byte* out = stock.cursor;
  stock.cursor += slots * node_slot_bytes;
  return out;
}

std::size_t slots_for(std::size_t bytes) { return (bytes + node_slot_bytes - 1) / node_slot_bytes; }

}  // namespace

void* tessera::ir::allocate_node(std::size_t bytes) {
  const std::size_t slots = slots_for(bytes);
  if (TESSERA_NODE_POOL == 0 || slots > max_slots)
    return ::operator new(bytes, std::align_val_t(node_slot_bytes));
  return allocate_slots(slots);
}

void tessera::ir::free_node(void* memory, std::size_t bytes) noexcept {
  const std::size_t slots = slots_for(bytes);
  if (TESSERA_NODE_POOL == 0 || slots > max_slots)
    return ::operator delete(memory, std::align_val_t(node_slot_bytes));
  give(stock.free, memory, slots);
}
