#include "tessera/describe/ancestry.h"

#include <algorithm>

using namespace tessera;
using namespace tessera::description;

namespace {

constexpr std::size_t most_entries = 16'000'000;  // 64 MB
constexpr std::size_t most_chains = 4'096;

}  // namespace

Ancestry::Ancestry(const Sequence& sequence) {
  const std::size_t steps = sequence.steps.size();
  chain_.resize(steps);
  position_.resize(steps);
  std::vector<std::uint32_t> tails;  // by chain: its last step
  for (std::uint32_t step = 0; step < steps; ++step) place(step, sequence.steps[step].waits, tails);
  tracked_ = static_cast<std::uint32_t>(
      std::min({tails.size(), most_chains, most_entries / std::max<std::size_t>(steps, 1)}));
  reached_.assign(steps * tracked_, 0);
  for (std::uint32_t step = 0; step < steps; ++step) {
    std::uint32_t* row = reached_.data() + static_cast<std::size_t>(step) * tracked_;
    for (const Wait& wait : sequence.steps[step].waits) {
      const std::uint32_t* other = reached_.data() + static_cast<std::size_t>(wait.step) * tracked_;
      for (std::uint32_t c = 0; c < tracked_; ++c) row[c] = std::max(row[c], other[c]);
      const std::uint32_t chain = chain_[wait.step];
      if (chain < tracked_) row[chain] = std::max(row[chain], position_[wait.step] + 1);
    }
  }
}

/// Goes on with the chain of a step it waits for, if that is still the last of its chain; else begins one.
void Ancestry::place(std::uint32_t step, const std::vector<Wait>& waits, std::vector<std::uint32_t>& tails) {
  for (const Wait& wait : waits) {
    const std::uint32_t chain = chain_[wait.step];
    if (tails[chain] != wait.step) continue;
    chain_[step] = chain;
    position_[step] = position_[wait.step] + 1;
    tails[chain] = step;
    return;
  }
  chain_[step] = static_cast<std::uint32_t>(tails.size());
  tails.push_back(step);
}
