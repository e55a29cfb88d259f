#include "tessera/stream/periods.h"

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <optional>

#include "tessera/stream/mix.h"

using namespace tessera;
using namespace tessera::stream;

namespace {

constexpr std::size_t most_candidates = 16;
constexpr int nearest_same = 8;  // how many earlier steps with the same op propose a period

constexpr std::uint64_t rounds_of_long_run = 8;
constexpr std::uint64_t steps_per_sample = 8;

/// Sequences of ops by whose last occurrence a period is proposed. One that is longer than a round can only
/// have occurred a round before.
struct Scale {
  std::uint64_t length = 0;
  std::uint64_t power = 0;  // of Lane::gram_base
};
constexpr std::array<Scale, 6> scales = [] {
  std::array<Scale, 6> out{};
  std::uint64_t length = 4;
  for (Scale& scale : out) {
    length *= 4;
    scale = {length, 1};
    for (std::uint64_t i = 0; i < length; ++i) scale.power *= Lane::gram_base;
  }
  return out;
}();

/// One past the last slot of step i at which a window may not begin, if it is to match the window `period`
/// steps before: a link that only one of the two has must lead out of it. REQUIRES the same ops.
std::uint64_t link_bound_at(const Lane& lane, std::uint64_t i, std::uint64_t period) {
  std::uint64_t bound = 0;
  std::uint64_t before = lane.step(i - period).first_slot;
  for (std::uint64_t slot = lane.step(i).first_slot; slot < lane.end_slot(i); ++slot, ++before) {
    const std::uint64_t a = lane.link(slot), b = lane.link(before);
    if (a == b) continue;
    const std::uint64_t shorter = a == 0 || b == 0 ? std::max(a, b) : std::min(a, b);
    if (shorter <= slot) bound = std::max(bound, slot - shorter + 1);
  }
  return bound;
}

/// The same for what dies: what only one of the two says must have been made before the window.
std::uint64_t death_bound_at(const Lane& lane, std::uint64_t i, std::uint64_t period) {
  if (!lane.has_deaths()) return 0;
  const auto x = lane.deaths(i), y = lane.deaths(i - period);
  std::vector<std::uint32_t> differ;
  std::set_symmetric_difference(x.begin(), x.end(), y.begin(), y.end(), std::back_inserter(differ),
                                std::greater<>());
  if (differ.empty()) return 0;
  const std::uint64_t nearest = differ.back();  // slots back to where it was made
  return nearest > lane.end_slot(i) ? 0 : lane.end_slot(i) - nearest + 1;
}

std::uint64_t bound_at(const Lane& lane, std::uint64_t i, std::uint64_t period) {
  return std::max(link_bound_at(lane, i, period), death_bound_at(lane, i, period));
}

bool same_op(const Lane& lane, std::uint64_t i, std::uint64_t period) {
  return i >= lane.begin() + period && lane.step(i).op == lane.step(i - period).op;
}

void follow(Lane& lane, std::uint64_t last) {
  std::erase_if(lane.periods, [&](Lane::Period& period) {
    if (!same_op(lane, last, period.period)) return true;
    period.bound = std::max(period.bound, bound_at(lane, last, period.period));
    return false;
  });
}

/// Whether the last `length` steps are nothing but rounds of the run.
bool is_part_of_run(const Lane& lane, const Lane::Period& run, std::uint64_t length) {
  return length % run.period == 0 && run.since + length <= lane.end() &&
         run.bound <= lane.step(lane.end() - length).first_slot;
}

/// `run` is the run the lane is in, if it is in one.
void propose(Lane& lane, std::uint64_t last, std::uint64_t length, const std::optional<Lane::Period>& run) {
  if (run && is_part_of_run(lane, *run, length)) return;
  const auto is_known = [&](const Lane::Period& period) { return period.period == length; };
  if (std::any_of(lane.periods.begin(), lane.periods.end(), is_known)) return;
  if (!same_op(lane, last, length)) return;
  Lane::Period period{.period = length, .since = last, .bound = bound_at(lane, last, length)};
  while (last - period.since < length && same_op(lane, period.since - 1, length)) {
    --period.since;
    period.bound = std::max(period.bound, bound_at(lane, period.since, length));
  }
  if (lane.periods.size() < most_candidates) {
    lane.periods.push_back(period);
    return;
  }
  const auto youngest = std::max_element(lane.periods.begin(), lane.periods.end(),
                                         [](const auto& a, const auto& b) { return a.since < b.since; });
  if (period.since < youngest->since) *youngest = period;
}

void propose_by_op(Lane& lane, std::uint64_t last, std::uint64_t longest,
                   const std::optional<Lane::Period>& run) {
  std::uint64_t at = last;
  for (int i = 0; i < nearest_same; ++i) {
    const std::uint64_t back = lane.step(at).previous_same;
    if (back == 0 || at < lane.begin() + back || last - (at - back) > longest) return;
    at -= back;
    propose(lane, last, last - at, run);
  }
}

/// Places are sampled by what the last ops are, so that equal sequences are sampled at the same places.
void propose_by_gram(Lane& lane, std::uint64_t last, std::uint64_t longest,
                     const std::optional<Lane::Period>& run) {
  if (last < lane.begin() + scales[0].length) return;
  const std::uint64_t sample = mix(lane.gram(last, scales[0].length, scales[0].power), 0);
  if (sample % steps_per_sample != 0) return;
  for (const Scale& scale : scales) {
    if (last < lane.begin() + scale.length) return;
    std::uint64_t& seen = lane.grams[mix(lane.gram(last, scale.length, scale.power), scale.length)];
    if (seen != 0 && last + 1 - seen <= longest) propose(lane, last, last + 1 - seen, run);
    seen = last + 1;
  }
}

}  // namespace

bool tessera::stream::is_square(const Lane& lane, const Lane::Period& period) {
  if (lane.size() < 2 * period.period) return false;
  const std::uint64_t start = lane.end() - period.period;
  return period.since <= start && period.bound <= lane.step(start).first_slot;
}

void tessera::stream::advance_periods(Lane& lane, std::uint64_t longest) {
  const std::uint64_t last = lane.end() - 1;
  follow(lane, last);
  std::optional<Lane::Period> run;
  for (const Lane::Period& period : lane.periods)
    if (!run && period.is_settled && is_square(lane, period)) run = period;
  const std::uint64_t length = run ? last - run->since : 0;
  if (run)
    std::erase_if(lane.periods, [&](const Lane::Period& other) {
      return other.period != run->period && is_part_of_run(lane, *run, other.period);
    });
  // In a long run there is nothing new but that it may be part of a longer round, unless it is too long.
  if (length > 2 * longest) return;
  if (!run || length <= rounds_of_long_run * run->period) propose_by_op(lane, last, longest, run);
  propose_by_gram(lane, last, longest, run);
  std::sort(lane.periods.begin(), lane.periods.end(),
            [](const auto& a, const auto& b) { return a.period < b.period; });
}
