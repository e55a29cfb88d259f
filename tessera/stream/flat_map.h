// A hash map from 64-bit keys to small values: open addressing, and clearing costs nothing, so that maps of
// short-lived parts of a stream can be used again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "tessera/stream/mix.h"

namespace tessera::stream {

/// Pointers to values stay valid until the next insertion or erasure. The order of for_each is not part of
/// the contract.
template <class V>
class FlatMap {
 public:
  [[nodiscard]] std::size_t size() const { return size_; }

  [[nodiscard]] V* find(std::uint64_t key) {
    if (size_ == 0) return nullptr;
    Slot& slot = slots_[place(key)];
    return slot.run == run_ ? &slot.value : nullptr;
  }

  /// The value under `key`, made if there is none.
  V& operator[](std::uint64_t key) {
    if ((size_ + 1) * 2 > slots_.size()) grow();
    Slot& slot = slots_[place(key)];
    if (slot.run != run_) {
      slot = {.key = key, .run = run_, .value = V()};
      ++size_;
    }
    return slot.value;
  }

  void erase(std::uint64_t key) {
    if (size_ == 0) return;
    std::size_t hole = place(key);
    if (slots_[hole].run != run_) return;
    // What stands behind the hole moves into it, if the hole is on its way from home.
    for (std::size_t i = next(hole); slots_[i].run == run_; i = next(i)) {
      const std::size_t home = mix(slots_[i].key, 1) & mask();
      if (((i - home) & mask()) < ((i - hole) & mask())) continue;
      slots_[hole] = std::move(slots_[i]);
      hole = i;
    }
    slots_[hole].run = 0;
    --size_;
  }

  void clear() {
    size_ = 0;
    if (++run_ != 0) return;
    for (Slot& slot : slots_) slot.run = 0;
    run_ = 1;
  }

  /// Erases the values for which `f` holds.
  template <class F>
  void erase_if(F&& f) {
    std::vector<std::uint64_t> keys;
    for_each([&](std::uint64_t key, const V& value) {
      if (f(value)) keys.push_back(key);
    });
    for (const std::uint64_t key : keys) erase(key);
  }

  template <class F>
  void for_each(F&& f) {
    for (Slot& slot : slots_)
      if (slot.run == run_) f(slot.key, slot.value);
  }

 private:
  struct Slot {
    std::uint64_t key = 0;
    std::uint32_t run = 0;  // the value is there if this is run_
    V value = {};
  };

  [[nodiscard]] std::size_t mask() const { return slots_.size() - 1; }
  [[nodiscard]] std::size_t next(std::size_t i) const { return (i + 1) & mask(); }
  /// Where the key is, or where it would go.
  [[nodiscard]] std::size_t place(std::uint64_t key) const {
    std::size_t i = mix(key, 1) & mask();
    while (slots_[i].run == run_ && slots_[i].key != key) i = next(i);
    return i;
  }
  void grow() {
    std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(slots_.empty() ? 16 : slots_.size() * 2));
    for (Slot& slot : old)
      if (slot.run == run_) slots_[place(slot.key)] = std::move(slot);
  }

  std::vector<Slot> slots_;
  std::size_t size_ = 0;
  std::uint32_t run_ = 1;
};

}  // namespace tessera::stream
