// The newest entries, found by a hash: sets of four, in which one more replaces the oldest. A thread keeps
// what it records over and over in such.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

namespace tessera::engine {

/// One more number of a hash whose highest bits choose a set.
inline std::uint64_t mixed(std::uint64_t hash, std::uint64_t number) {
  return (hash ^ number) * 0x9e3779b97f4a7c15ULL;
}

/// 2 ^ `set_bits` sets; their memory is taken with the first entry.
template <class Entry, unsigned set_bits>
class RecentSets {
 public:
  /// The entry for which `is_it` holds, or null.
  template <class IsIt>
  [[nodiscard]] const Entry* find(std::uint64_t hash, IsIt&& is_it) const {
    if (sets_.empty()) return nullptr;
    for (const Entry& entry : sets_[hash >> (64 - set_bits)])
      if (is_it(entry)) return &entry;
    return nullptr;
  }
  void add(std::uint64_t hash, Entry entry) {
    if (sets_.empty()) sets_.resize(std::size_t{1} << set_bits);
    Set& set = sets_[hash >> (64 - set_bits)];
    std::move_backward(set.begin(), set.end() - 1, set.end());
    set.front() = std::move(entry);
  }

 private:
  using Set = std::array<Entry, 4>;  ///< the newest first
  std::vector<Set> sets_;
};

}  // namespace tessera::engine
