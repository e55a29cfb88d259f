// A map from nodes to values, for one run of an algorithm over a graph. Keyed by address.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "tessera/base/arena.h"
#include "tessera/ir/node.h"
#include "tessera/ir/node_memory.h"

namespace tessera::ir {

/// How many tasks ahead a walk asks for memory: the time of about one cache miss.
inline constexpr std::size_t look_ahead = 8;

/// Values lie in pages that mirror the memory of the nodes (node_memory.h): neighbours in memory are
/// neighbours in the table, and finding the entry of a node does not touch the node. Which values of a page
/// are set is kept in bits beside the pointer to it, so that "not there" is known after one look at a small
/// table. References stay valid.
template <class V>
class NodeTable {
 public:
  NodeTable() = default;
  NodeTable(NodeTable&&) = delete;
  ~NodeTable() {
    if constexpr (!std::is_trivially_destructible_v<V>)
      for (const Entry& entry : entries_)
        for (std::size_t i = 0; entry.values != nullptr && i < page_slots; ++i)
          if (entry.has(i)) std::destroy_at(entry.values + i);
  }

  /// The value of `node`, or null.
  [[nodiscard]] V* find(const Node& node) {
    const std::uintptr_t slot = slot_of(node);
    const Entry* entry = entry_at(slot / page_slots);
    return entry != nullptr && entry->has(slot % page_slots) ? entry->values + slot % page_slots : nullptr;
  }
  /// Asks for the value of `node` to be brought near, or for the node itself if there is none.
  void prefetch(const Node& node) {
    const V* value = find(node);
    __builtin_prefetch(value != nullptr ? static_cast<const void*>(value) : &node);
  }
  /// The value of `node`, made if there is none.
  V& operator[](const Node& node) {
    const std::uintptr_t slot = slot_of(node);
    Entry* entry = entry_at(slot / page_slots);
    if (entry == nullptr) entry = add_page(slot / page_slots);
    V* value = entry->values + slot % page_slots;
    if (!entry->has(slot % page_slots)) {
      entry->set(slot % page_slots);
      std::construct_at(value);
    }
    return *value;
  }

 private:
  static constexpr std::size_t page_slots = 256;

  /// A page. One line of memory.
  struct alignas(64) Entry {
    std::uintptr_t key = 0;  ///< number of the page, plus one
    V* values = nullptr;
    std::uint64_t present[page_slots / 64] = {};

    [[nodiscard]] bool has(std::size_t i) const { return (present[i / 64] >> (i % 64) & 1) != 0; }
    void set(std::size_t i) { present[i / 64] |= std::uint64_t{1} << (i % 64); }
  };

  static std::uintptr_t slot_of(const Node& node) {
    return reinterpret_cast<std::uintptr_t>(&node) / node_slot_bytes;
  }
  [[nodiscard]] std::size_t home(std::uintptr_t number) const {
    return (number * 0x9e3779b97f4a7c15ULL) >> shift_;
  }

  Entry* entry_at(std::uintptr_t number) {
    if (entries_.empty()) return nullptr;
    for (std::size_t at = home(number);; at = (at + 1) & (entries_.size() - 1)) {
      if (entries_[at].key == number + 1) return &entries_[at];
      if (entries_[at].key == 0) return nullptr;
    }
  }

  Entry* add_page(std::uintptr_t number) {
    if (entries_.size() <= 2 * page_count_) grow();
    ++page_count_;
    void* values = arena_.allocate(page_slots * sizeof(V), alignof(V));
    return insert({.key = number + 1, .values = static_cast<V*>(values)});
  }

  Entry* insert(const Entry& entry) {
    std::size_t at = home(entry.key - 1);
    while (entries_[at].key != 0) at = (at + 1) & (entries_.size() - 1);
    entries_[at] = entry;
    return &entries_[at];
  }

  void grow() {
    const std::vector<Entry> old = std::move(entries_);
    entries_.assign(old.empty() ? 16 : old.size() * 4, Entry());
    shift_ = 64 - std::countr_zero(entries_.size());
    for (const Entry& entry : old)
      if (entry.key != 0) (void)insert(entry);
  }

  Arena arena_{page_slots * sizeof(V)};
  std::vector<Entry> entries_;
  std::size_t page_count_ = 0;
  int shift_ = 0;
};

}  // namespace tessera::ir
