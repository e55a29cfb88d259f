#include "tessera/plan/memory.h"

#include <algorithm>
#include <numeric>

using namespace tessera;
using namespace tessera::plan;

namespace {

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + memory_alignment - 1) / memory_alignment * memory_alignment;
}

std::uint32_t last_of(const Lifetime& life) { return life.reads.empty() ? life.first : life.reads.back(); }

/// For each step the set of all steps it waits for, directly or not: one bit per step.
class Ancestors {
 public:
  Ancestors(std::size_t step_count, std::span<const std::vector<std::uint32_t>> before)
      : words_((step_count + 63) / 64), bits_(words_ * step_count) {
    for (std::size_t s = 0; s < before.size(); ++s)
      for (const std::uint32_t b : before[s]) {
        for (std::size_t w = 0; w < words_; ++w) bits_[s * words_ + w] |= bits_[b * words_ + w];
        bits_[s * words_ + b / 64] |= std::uint64_t{1} << (b % 64);
      }
  }
  [[nodiscard]] bool is_before(std::uint32_t a, std::uint32_t b) const {
    return (bits_[b * words_ + a / 64] >> (a % 64) & 1) != 0;
  }

 private:
  std::size_t words_;
  std::vector<std::uint64_t> bits_;
};

/// Whether `a` is over before `b` begins.
class Over {
 public:
  Over(StepOrder order, std::size_t step_count, std::span<const std::vector<std::uint32_t>> before)
      : order_(order),
        ancestors_(order == StepOrder::by_path ? step_count : 0,
                   order == StepOrder::by_path ? before : decltype(before){}) {}

  [[nodiscard]] bool operator()(const Lifetime& a, const Lifetime& b) const {
    if (order_ == StepOrder::listed) return last_of(a) < b.first;
    if (!ancestors_.is_before(a.first, b.first)) return false;
    return std::all_of(a.reads.begin(), a.reads.end(),
                       [&](std::uint32_t read) { return ancestors_.is_before(read, b.first); });
  }

 private:
  StepOrder order_;
  Ancestors ancestors_;
};

std::int64_t most_live(std::span<const Lifetime> lifetimes, std::size_t step_count) {
  std::vector<std::int64_t> change(step_count + 1, 0);
  for (const Lifetime& life : lifetimes) {
    change[life.first] += aligned(life.bytes);
    change[last_of(life) + 1] -= aligned(life.bytes);
  }
  std::int64_t live = 0, most = 0;
  for (const std::int64_t c : change) most = std::max(most, live += c);
  return most;
}

/// A stretch of the block that is taken.
struct Taken {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// The lowest gap of `bytes` among the stretches, best fit.
std::int64_t best_gap(std::vector<Taken>& taken, std::int64_t bytes) {
  std::sort(taken.begin(), taken.end(), [](const Taken& a, const Taken& b) { return a.begin < b.begin; });
  std::int64_t at = 0, best = -1, best_room = 0;
  for (const Taken& t : taken) {
    const std::int64_t room = t.begin - at;
    if (room >= bytes && (best < 0 || room < best_room)) {
      best = at;
      best_room = room;
    }
    at = std::max(at, t.end);
  }
  return best >= 0 ? best : at;
}

}  // namespace

MemoryLayout plan::lay_out(std::span<const Lifetime> lifetimes, std::size_t step_count, StepOrder order,
                           std::span<const std::vector<std::uint32_t>> before) {
  MemoryLayout out;
  out.offsets.assign(lifetimes.size(), 0);
  out.lower_bound = most_live(lifetimes, step_count);
  const Over over(order, step_count, before);
  // Large values first: they find room while there are no gaps to fit into; small ones fill what is left.
  std::vector<std::uint32_t> by_size(lifetimes.size());
  std::iota(by_size.begin(), by_size.end(), 0);
  std::stable_sort(by_size.begin(), by_size.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return lifetimes[a].bytes > lifetimes[b].bytes; });
  std::vector<std::uint32_t> placed;
  std::vector<Taken> taken;
  for (const std::uint32_t i : by_size) {
    const std::int64_t bytes = aligned(lifetimes[i].bytes);
    out.without_reuse += bytes;
    if (bytes == 0) continue;
    taken.clear();
    for (const std::uint32_t j : placed)
      if (!over(lifetimes[i], lifetimes[j]) && !over(lifetimes[j], lifetimes[i]))
        taken.push_back({out.offsets[j], out.offsets[j] + aligned(lifetimes[j].bytes)});
    out.offsets[i] = best_gap(taken, bytes);
    out.bytes = std::max(out.bytes, out.offsets[i] + bytes);
    placed.push_back(i);
  }
  return out;
}
