#include "tessera/engine/component.h"

#include <utility>

using namespace tessera::engine;

std::uint64_t Component::next_id() {
  static std::atomic<std::uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

void Component::destroy(Component* component) {
  // Up the chain without recursion: each link holds its parent.
  while (component != nullptr) {
    Component* parent = component->parent_.load(std::memory_order_relaxed);
    delete component;
    if (parent == nullptr || parent->refs_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    component = parent;
  }
}

Component* Component::join_roots(Component* a, Component* b) {
  for (;;) {
    a = a->root();
    b = b->root();
    if (a == b) return a;
    // The one of lower rank goes below; of equals, the younger. A rank that is out of date costs balance,
    // nothing else.
    const std::uint32_t rank_a = a->rank_.load(std::memory_order_relaxed),
                        rank_b = b->rank_.load(std::memory_order_relaxed);
    if (rank_a < rank_b || (rank_a == rank_b && a->id_ > b->id_)) std::swap(a, b);
    a->retain();
    Component* none = nullptr;
    if (b->parent_.compare_exchange_strong(none, a, std::memory_order_acq_rel)) {
      if (rank_a == rank_b) a->rank_.fetch_add(1, std::memory_order_relaxed);
      a->touch();
      return a;
    }
    a->release();
  }
}
