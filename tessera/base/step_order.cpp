#include "tessera/base/step_order.h"

#include <algorithm>

using namespace tessera;

namespace {

constexpr std::size_t most_entries = 16'000'000;  // 64 MB
constexpr std::size_t most_chains = 4'096;

}  // namespace

StepOrder::StepOrder(std::span<const std::vector<std::uint32_t>> waits)
    : chain_(waits.size()), position_(waits.size()) {
  const std::size_t steps = waits.size();
  std::vector<std::uint32_t> tails;  // by chain: its last step
  for (std::uint32_t step = 0; step < steps; ++step) place(step, waits[step], tails);
  tracked_ = static_cast<std::uint32_t>(
      std::min({tails.size(), most_chains, most_entries / std::max<std::size_t>(steps, 1)}));
  reached_.assign(steps * tracked_, 0);
  for (std::uint32_t step = 0; step < steps; ++step) {
    std::uint32_t* row = reached_.data() + static_cast<std::size_t>(step) * tracked_;
    for (const std::uint32_t wait : waits[step]) {
      const std::uint32_t* other = reached_.data() + static_cast<std::size_t>(wait) * tracked_;
      for (std::uint32_t c = 0; c < tracked_; ++c) row[c] = std::max(row[c], other[c]);
      if (chain_[wait] < tracked_) row[chain_[wait]] = std::max(row[chain_[wait]], position_[wait] + 1);
    }
  }
}

/// Goes on with the chain of a step it waits for, if that is still the last of its chain; else begins one.
void StepOrder::place(std::uint32_t step, const std::vector<std::uint32_t>& waits,
                      std::vector<std::uint32_t>& tails) {
  for (const std::uint32_t wait : waits) {
    const std::uint32_t chain = chain_[wait];
    if (tails[chain] != wait) continue;
    chain_[step] = chain;
    position_[step] = position_[wait] + 1;
    tails[chain] = step;
    return;
  }
  chain_[step] = static_cast<std::uint32_t>(tails.size());
  tails.push_back(step);
}
