// The states of a bounded search, by the number of positions they have decided.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "tessera/cover/fixed_cost.h"
#include "tessera/cover/sequence_table.h"

namespace tessera::cover {

/// How a state was reached, and what that cost above the prices.
struct Arrival {
  Cost excess = 0;
  std::uint32_t parent = 0;  ///< in the trail
  std::uint32_t tile = 0;    ///< chosen last
};

/// States of one length, each once, numbered in the order of first appearance.
class Bucket {
 public:
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(arrivals_.size()); }
  [[nodiscard]] const Arrival& arrival(std::uint32_t state) const { return arrivals_[state]; }
  [[nodiscard]] std::span<const std::uint64_t> words(std::uint32_t state) const {
    return {words_.data() + state * std::size_t{width_}, width_};
  }
  /// Adds a state, or keeps the cheaper of two ways to reach it.
  void offer(std::span<const std::uint64_t> words, const Arrival& arrival) {
    if (2 * arrivals_.size() >= slots_.size()) grow(words.size());
    std::uint32_t& slot = find(words);
    if (slot == 0) {
      words_.insert(words_.end(), words.begin(), words.end());
      arrivals_.push_back(arrival);
      slot = size();
    } else if (arrival.excess < arrivals_[slot - 1].excess) {
      arrivals_[slot - 1] = arrival;
    }
  }
  /// Forgets all states and gives the memory back.
  void clear() { *this = Bucket(); }

 private:
  std::uint32_t& find(std::span<const std::uint64_t> key) {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = mix_words(key) & mask;
    while (slots_[at] != 0 && !std::ranges::equal(words(slots_[at] - 1), key)) at = (at + 1) & mask;
    return slots_[at];
  }
  void grow(std::size_t width) {
    width_ = width;
    slots_.assign(std::max<std::size_t>(64, 2 * slots_.size()), 0);
    for (std::uint32_t state = 0; state < size(); ++state) find(words(state)) = state + 1;
  }

  std::size_t width_ = 0;
  std::vector<std::uint64_t> words_;
  std::vector<Arrival> arrivals_;
  std::vector<std::uint32_t> slots_;  ///< number + 1, or 0; open addressing
};

}  // namespace tessera::cover
