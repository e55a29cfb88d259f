// What the handles of C stand for: tables of values, looked up by number and never followed as pointers.
//
// A handle is a slot, the generation of the slot and a mark in the bits that no address of a program has. A
// slot that is freed moves to its next generation, so old handles to it are found out; one whose generations
// are used up is left alone.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "tessera/base/forked_child.h"
#include "tessera/capi/gate.h"
#include "tessera/capi/tessera.h"
#include "tessera/engine/engine.h"
#include "tessera/tensor/graph.h"

namespace tessera::capi {

/// Thread-safe. Several shards, so that threads that make tensors do not wait for each other. Nothing is
/// destroyed under a lock: that can run code of the user.
template <class T>
class HandleTable {
 public:
  /// `kind` tells the handles of different tables apart.
  explicit HandleTable(std::uint64_t kind) : kind_(kind) {}

  std::uint64_t add(T value) {
    check_no_forked_child();
    const std::uint64_t s = shard_of_thread();
    Shard& shard = shards_[s];
    const std::lock_guard lock(shard.mutex);
    if (shard.first_free == none) {
      if (shard.slots.size() > field) fail(TSR_ERROR_MEMORY, "there are too many handles");
      shard.slots.emplace_back();
      shard.first_free = shard.slots.size() - 1;
    }
    const std::uint64_t index = shard.first_free;
    Slot& slot = shard.slots[index];
    slot.value.emplace(std::move(value));
    shard.first_free = slot.next_free;
    return mark << 56 | kind_ << 52 | s << 48 | slot.generation << 24 | index;
  }

  /// A copy of the value.
  [[nodiscard]] std::optional<T> find(std::uint64_t handle) {
    const auto [shard, lock, slot] = locked(handle);
    return slot == nullptr ? std::nullopt : slot->value;
  }

  /// Sets the value of a handle and returns the old one.
  std::optional<T> replace(std::uint64_t handle, T value) {
    const auto [shard, lock, slot] = locked(handle);
    if (slot == nullptr) return std::nullopt;
    std::optional<T> old(std::move(value));
    std::swap(old, slot->value);
    return old;
  }

  /// Frees a handle and returns what it stood for.
  std::optional<T> remove(std::uint64_t handle) {
    const auto [shard, lock, slot] = locked(handle);
    if (slot == nullptr) return std::nullopt;
    std::optional<T> old;
    std::swap(old, slot->value);
    if (slot->generation++ < field) slot->next_free = std::exchange(shard->first_free, handle & field);
    return old;
  }

 private:
  static constexpr std::uint64_t mark = 0x7e, field = 0xffffff, none = ~std::uint64_t{0};
  static constexpr std::size_t shard_count = 16;

  struct Slot {
    std::optional<T> value;
    std::uint64_t generation = 0;
    std::uint64_t next_free = none;
  };
  struct Shard {
    std::mutex mutex;
    std::deque<Slot> slots;
    std::uint64_t first_free = none;
  };
  struct Locked {
    Shard* shard;
    std::unique_lock<std::mutex> lock;
    Slot* slot;
  };

  /// The slot of a handle that is alive, else null.
  Locked locked(std::uint64_t handle) {
    if (handle >> 52 != (mark << 4 | kind_)) return {nullptr, {}, nullptr};
    Shard& shard = shards_[handle >> 48 & (shard_count - 1)];
    std::unique_lock lock(shard.mutex, std::defer_lock);
    // What a thread of the parent had locked stays so in the child of a fork.
    if (!is_forked_child())
      lock.lock();
    else if (!lock.try_lock())
      return {nullptr, {}, nullptr};
    const std::uint64_t index = handle & field;
    Slot* slot = index < shard.slots.size() ? &shard.slots[index] : nullptr;
    const bool alive = slot != nullptr && slot->value && slot->generation == (handle >> 24 & field);
    return {&shard, std::move(lock), alive ? slot : nullptr};
  }

  static std::uint64_t shard_of_thread() {
    static std::atomic<std::uint64_t> threads{0};
    thread_local const std::uint64_t own = threads.fetch_add(1, std::memory_order_relaxed) % shard_count;
    return own;
  }

  std::uint64_t kind_;
  std::array<Shard, shard_count> shards_;
};

/// What a tensor handle stands for. Whether it is an input does not depend on what was executed.
struct TensorEntry {
  Tensor tensor;
  bool is_input = false;
};

// From handles to values and back. A null handle, a freed one and one of another type fail.

/// The value of a handle; `name` is that of the argument.
[[nodiscard]] TensorEntry entry_of(tsr_tensor handle, const char* name = "tensor");
[[nodiscard]] inline Tensor tensor_of(tsr_tensor handle, const char* name = "tensor") {
  return entry_of(handle, name).tensor;
}
[[nodiscard]] Graph graph_of(tsr_graph handle, const char* name = "graph");
/// The default engine for a null handle.
[[nodiscard]] std::shared_ptr<engine::Engine> engine_of(tsr_engine handle);

[[nodiscard]] tsr_tensor make_handle(TensorEntry entry);
[[nodiscard]] tsr_graph make_handle(Graph graph);
[[nodiscard]] tsr_engine make_handle(std::shared_ptr<engine::Engine> engine);

/// Gives the handle of an input a new version.
void set_input(tsr_tensor handle, Tensor tensor);

void free_handle(tsr_tensor handle);
void free_handle(tsr_graph handle);
void free_handle(tsr_engine handle);

/// Writes one handle per computed tensor, or none if that fails. `out` has room for all of them.
void make_handles(std::vector<Tensor> tensors, tsr_tensor* out);

}  // namespace tessera::capi
