#include "tessera/ir/node_memory.h"

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

/// What threads that ended left behind, and all blocks ever made: they live as long as the process.
struct SharedStock {
  std::mutex mutex;
  std::array<FreeSlot*, max_slots> free{};
  std::vector<MemoryBlock> blocks;
};

SharedStock& shared_stock() {
  static auto* stock = new SharedStock;  // never destroyed: nodes may outlive every static object
  return *stock;
}

/// The free slots of one thread.
class ThreadStock {
 public:
  ~ThreadStock() {
    SharedStock& shared = shared_stock();
    const std::lock_guard lock(shared.mutex);
    for (std::size_t size = 0; size < max_slots; ++size)
      while (FreeSlot* slot = take(size)) {
        slot->next = shared.free[size];
        shared.free[size] = slot;
      }
  }

  void* allocate(std::size_t slots) {
    if (FreeSlot* slot = take(slots - 1)) return slot;
    if (static_cast<std::size_t>(limit_ - cursor_) < slots * node_slot_bytes && !refill(slots))
      return take(slots - 1);
    std::byte* out = cursor_;
    cursor_ += slots * node_slot_bytes;
    return out;
  }
  void free(void* memory, std::size_t slots) {
    auto* slot = static_cast<FreeSlot*>(memory);
    slot->next = free_[slots - 1];
    free_[slots - 1] = slot;
  }

 private:
  FreeSlot* take(std::size_t size) {
    FreeSlot* slot = free_[size];
    if (slot != nullptr) free_[size] = slot->next;
    return slot;
  }

  /// Takes over the shared slots of this size (false), or makes a new block to cut from (true).
  bool refill(std::size_t slots) {
    SharedStock& shared = shared_stock();
    const std::lock_guard lock(shared.mutex);
    if (shared.free[slots - 1] != nullptr) {
      std::swap(free_[slots - 1], shared.free[slots - 1]);
      return false;
    }
    shared.blocks.push_back(allocate_block(block_bytes_));
    cursor_ = shared.blocks.back().get();
    limit_ = cursor_ + block_bytes_;
    block_bytes_ = block_bytes_ * 4 < large_page_bytes ? block_bytes_ * 4 : large_page_bytes;
    return true;
  }

  std::array<FreeSlot*, max_slots> free_{};
  std::byte* cursor_ = nullptr;
  std::byte* limit_ = nullptr;
  std::size_t block_bytes_ = first_block_bytes;
};

thread_local ThreadStock stock;

std::size_t slots_for(std::size_t bytes) {
  return (bytes + node_slot_bytes - 1) / node_slot_bytes;
}

}  // namespace

void* tessera::ir::allocate_node(std::size_t bytes) {
  const std::size_t slots = slots_for(bytes);
  if (TESSERA_NODE_POOL == 0 || slots > max_slots)
    return ::operator new(bytes, std::align_val_t(node_slot_bytes));
  return stock.allocate(slots);
}

void tessera::ir::free_node(void* memory, std::size_t bytes) noexcept {
  const std::size_t slots = slots_for(bytes);
  if (TESSERA_NODE_POOL == 0 || slots > max_slots)
    return ::operator delete(memory, std::align_val_t(node_slot_bytes));
  stock.free(memory, slots);
}
