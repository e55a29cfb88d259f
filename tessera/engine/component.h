// Which graphs were joined: a union-find over small counted objects. Recording joins without a lock; only
// looking at graphs asks.
//
// A link from child to parent is set once and holds the parent, so walking up from a component one holds is
// safe without a lock. Components are linked by rank, which keeps the way up logarithmic.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "tessera/base/slot_memory.h"

namespace tessera::engine {

class Engine;

class Component {
 public:
  explicit Component(std::shared_ptr<Engine> engine) : engine_(std::move(engine)), id_(next_id()) {}

  // Every stored tensor has one of its own.
  static void* operator new(std::size_t bytes) { return SlotMemory::allocate(bytes); }
  static void operator delete(void* memory, std::size_t bytes) noexcept { SlotMemory::free(memory, bytes); }

  [[nodiscard]] const std::shared_ptr<Engine>& engine() const { return engine_; }

  /// The component that stands for all that were joined with this one.
  [[nodiscard]] Component* root() {
    Component* at = this;
    while (Component* up = at->parent_.load(std::memory_order_acquire)) at = up;
    return at;
  }

  /// Joins two and returns the root of both.
  static Component* join(Component* a, Component* b) {
    a = a->root();
    b = b->root();
    return a == b ? a : join_roots(a, b);
  }

  /// Says that what belongs to this component has changed; joining does too.
  void touch() { version_.fetch_add(1, std::memory_order_acq_rel); }
  /// Of a root: together with the root it stays the same as long as nothing changed.
  [[nodiscard]] std::uint32_t version() const { return version_.load(std::memory_order_acquire); }

  void retain() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void release() {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy(this);
  }

 private:
  ~Component() = default;
  static std::uint64_t next_id();
  /// What were roots a moment ago: other threads join, too.
  static Component* join_roots(Component* a, Component* b);
  static void destroy(Component* component);

  std::atomic<std::uint32_t> refs_{1};
  std::atomic<std::uint32_t> rank_{0};
  std::atomic<std::uint32_t> version_{0};
  std::atomic<Component*> parent_{nullptr};
  std::shared_ptr<Engine> engine_;
  std::uint64_t id_;
};

}  // namespace tessera::engine
