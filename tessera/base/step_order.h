// Which steps are ordered before which, by a path of waits.
//
// The steps are split into chains, each step waiting for the one before it in its chain; a step remembers how
// far along each chain the steps before it reach. Exact for as many chains as fit the memory; beyond that it
// answers "not ordered", which costs reuse and never a result.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tessera {

class StepOrder {
 public:
  /// Steps stand in an order in which they can run; `waits` has for each the steps it waits for.
  explicit StepOrder(std::span<const std::vector<std::uint32_t>> waits);

  /// Whether step `a` is over before step `b` begins, in every run that respects the waits.
  [[nodiscard]] bool is_before(std::uint32_t a, std::uint32_t b) const {
    if (chain_[a] >= tracked_) return false;
    return reached_[static_cast<std::size_t>(b) * tracked_ + chain_[a]] > position_[a];
  }

 private:
  void place(std::uint32_t step, const std::vector<std::uint32_t>& waits, std::vector<std::uint32_t>& tails);

  std::uint32_t tracked_ = 0;            ///< chains that are followed
  std::vector<std::uint32_t> chain_;     ///< by step
  std::vector<std::uint32_t> position_;  ///< by step: in its chain, from 0
  std::vector<std::uint32_t> reached_;   ///< by step and chain: steps of the chain that are before it
};

}  // namespace tessera
