#include "tessera/base/memory_layout.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

#include "tessera/base/live_set.h"

using namespace tessera;

namespace {

constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
/// Orders that are tried, and values that are placed in all of them together.
constexpr std::size_t most_rounds = 32, most_placed = 200'000;

std::uint64_t most_live(std::span<const LiveRange> ranges, std::size_t step_count) {
  std::vector<std::uint64_t> begins(step_count + 1), ends(step_count + 1);
  for (const LiveRange& life : ranges) {
    begins[life.first] = saturating_sum(begins[life.first], aligned_bytes(life.bytes));
    ends[life.last() + 1] = saturating_sum(ends[life.last() + 1], aligned_bytes(life.bytes));
  }
  std::uint64_t live = 0, largest = 0;
  for (std::size_t step = 0; step < step_count; ++step) {
    live = saturating_sum(live - std::min(live, ends[step]), begins[step]);
    largest = std::max(largest, live);
  }
  return largest;
}

MemoryLayout empty_layout(std::span<const LiveRange> ranges, std::size_t step_count) {
  MemoryLayout out;
  out.offsets.assign(ranges.size(), 0);
  out.lower_bound = most_live(ranges, step_count);
  for (const LiveRange& life : ranges)
    out.without_reuse = saturating_sum(out.without_reuse, aligned_bytes(life.bytes));
  return out;
}

// ---- steps one by one: each value takes the best gap among those that live beside it

/// A stretch of the block that is taken.
struct Taken {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// The smallest gap of `bytes` among the stretches, the lowest of equal ones; else behind them.
std::uint64_t best_gap(std::vector<Taken>& taken, std::uint64_t bytes) {
  std::sort(taken.begin(), taken.end(), [](const Taken& a, const Taken& b) { return a.begin < b.begin; });
  std::uint64_t at = 0, best = most, best_room = most;
  for (const Taken& t : taken) {
    const std::uint64_t room = t.begin > at ? t.begin - at : 0;
    if (room >= bytes && room < best_room) {
      best = at;
      best_room = room;
    }
    at = std::max(at, t.end);
  }
  return best != most ? best : at;
}

/// Places the ranges one after the other.
void pack(std::span<const LiveRange> ranges, const std::vector<std::uint32_t>& order, LiveSet& placed,
          MemoryLayout& out) {
  placed.clear();
  out.bytes = 0;
  std::vector<Taken> taken;
  for (const std::uint32_t i : order) {
    const std::uint64_t bytes = aligned_bytes(ranges[i].bytes);
    if (bytes == 0) continue;
    taken.clear();
    placed.for_each_beside(ranges[i], [&](std::uint32_t j) {
      taken.push_back({out.offsets[j], saturating_sum(out.offsets[j], aligned_bytes(ranges[j].bytes))});
    });
    out.offsets[i] = best_gap(taken, bytes);
    out.bytes = std::max(out.bytes, saturating_sum(out.offsets[i], bytes));
    placed.add(i);
  }
}

// ---- steps side by side: a value moves into a slot whose last tenant is surely gone

struct Slot {
  std::uint64_t bytes = 0;
  std::uint32_t tenant = 0;
  std::uint64_t offset = 0;
};

class SlotPlanner {
 public:
  SlotPlanner(std::span<const LiveRange> ranges, const StepOrder& order) : ranges_(ranges), order_(order) {}

  void run(MemoryLayout& out) {
    std::vector<std::uint32_t> by_first(ranges_.size()), slot_of(ranges_.size());
    std::iota(by_first.begin(), by_first.end(), 0);
    std::stable_sort(by_first.begin(), by_first.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return ranges_[a].first < ranges_[b].first; });
    for (const std::uint32_t i : by_first) slot_of[i] = take_slot(i);
    for (Slot& slot : slots_) {
      slot.offset = out.bytes;
      out.bytes = saturating_sum(out.bytes, slot.bytes);
    }
    for (std::size_t i = 0; i < slot_of.size(); ++i) out.offsets[i] = slots_[slot_of[i]].offset;
  }

 private:
  /// The smallest free slot that is large enough, else the largest free one, made larger, else a new one.
  std::uint32_t take_slot(std::uint32_t tenant) {
    const std::uint64_t bytes = aligned_bytes(ranges_[tenant].bytes);
    constexpr int most_tries = 256;
    int tries = 0;
    for (auto at = by_size_.lower_bound({bytes, 0}); at != by_size_.end() && tries < most_tries;
         ++at, ++tries)
      if (is_free_for(at->second, tenant)) return move_in(at, tenant, at->first);
    tries = 0;
    for (auto at = by_size_.lower_bound({bytes, 0}); at != by_size_.begin() && tries < most_tries; ++tries)
      if (--at; is_free_for(at->second, tenant)) return move_in(at, tenant, bytes);
    slots_.push_back({.bytes = bytes, .tenant = tenant});
    const auto slot = static_cast<std::uint32_t>(slots_.size() - 1);
    by_size_.emplace(bytes, slot);
    return slot;
  }

  using BySize = std::set<std::pair<std::uint64_t, std::uint32_t>>;
  std::uint32_t move_in(BySize::iterator at, std::uint32_t tenant, std::uint64_t bytes) {
    const std::uint32_t slot = at->second;
    by_size_.erase(at);
    slots_[slot].bytes = bytes;
    slots_[slot].tenant = tenant;
    by_size_.emplace(bytes, slot);
    return slot;
  }

  [[nodiscard]] bool is_free_for(std::uint32_t slot, std::uint32_t tenant) const {
    const LiveRange& old = ranges_[slots_[slot].tenant];
    const std::uint32_t first = ranges_[tenant].first;
    // From the last on, since the last is the one that is most often still running.
    return std::all_of(old.reads.rbegin(), old.reads.rend(),
                       [&](std::uint32_t read) { return order_.is_before(read, first); }) &&
           order_.is_before(old.first, first);
  }

  std::span<const LiveRange> ranges_;
  const StepOrder& order_;
  std::vector<Slot> slots_;
  BySize by_size_;
};

}  // namespace

std::uint64_t tessera::saturating_sum(std::uint64_t a, std::uint64_t b) {
  return a > most - b ? most : a + b;
}

std::uint64_t tessera::aligned_bytes(std::uint64_t bytes) {
  return saturating_sum(bytes, memory_alignment - 1) / memory_alignment * memory_alignment;
}

MemoryLayout tessera::lay_out(std::span<const LiveRange> ranges, std::size_t step_count) {
  MemoryLayout best = empty_layout(ranges, step_count), last = best;
  best.bytes = most;
  LiveSet placed(ranges);
  std::vector<std::uint32_t> order(ranges.size());
  std::iota(order.begin(), order.end(), 0);
  const auto try_order = [&] {
    pack(ranges, order, placed, last);
    if (last.bytes < best.bytes) best = last;
    return best.bytes == best.lower_bound;
  };
  // In the order in which they begin there are few gaps where sizes are much alike.
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return ranges[a].first < ranges[b].first; });
  if (try_order()) return best;
  // Large values first: they find room while there are no gaps to fit into; small ones fill what is left.
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return ranges[a].bytes > ranges[b].bytes; });
  // What then lies too high is placed before all others the next time.
  const std::size_t rounds = std::min<std::size_t>(most_rounds, most_placed / (1 + ranges.size()));
  for (std::size_t round = 0; round <= rounds && !try_order(); ++round)
    std::stable_partition(order.begin(), order.end(), [&](std::uint32_t i) {
      return saturating_sum(last.offsets[i], aligned_bytes(ranges[i].bytes)) > last.lower_bound;
    });
  return best;
}

MemoryLayout tessera::lay_out(std::span<const LiveRange> ranges, std::size_t step_count,
                              const StepOrder& order) {
  MemoryLayout out = empty_layout(ranges, step_count);
  SlotPlanner(ranges, order).run(out);
  return out;
}
