#include "tessera/stream/hot_path_detector.h"

#include <algorithm>

#include "tessera/stream/encoder.h"
#include "tessera/stream/form_table.h"
#include "tessera/stream/lane_set.h"
#include "tessera/stream/periods.h"
#include "tessera/stream/recorder.h"

using namespace tessera;
using namespace tessera::stream;

namespace {

constexpr std::size_t most_attempts = 32;      // per lane
constexpr std::size_t most_looked_back = 256;  // places at which a new unit may have begun before

HotUnit describe(const Tally& tally, std::uint64_t now, const Hotness& hotness) {
  return {tally.signature, tally.length, tally.count, tally.first_hot_at, tally.is_hot_at(now, hotness)};
}

}  // namespace

class HotPathDetector::State final : public LaneObserver {
 public:
  explicit State(const HotPathOptions& options)
      : options_(options),
        hotness_{options.threshold, options.decay},
        ops_(4 * options.max_period),
        units_(std::max<std::size_t>(options.max_tracked, 1), 64 * options.max_period),
        forms_(4 * options.max_tracked, 16 * options.max_period),
        lanes_({options.max_components, options.max_period, options.hash_mask}, *this),
        encoder_(options.signature_hash) {
    reset_loose();
  }

  HotPathAnswer record(const Instruction& instruction);
  void flush();
  [[nodiscard]] HotPathStatistics statistics() const;
  [[nodiscard]] std::vector<HotUnit> units() const;

  void before_append(Lane& lane) override;
  void after_append(Lane& lane) override;
  void ended(Lane& lane) override;
  void dissolved(Lane& lane) override;

 private:
  void reset_loose();
  void append_loose(const Lane& lane);
  void advance_attempts(Lane& lane);
  void complete_attempts(Lane& lane);
  void look_at_squares(Lane& lane);
  [[nodiscard]] bool is_rotation(const Lane& lane, std::uint64_t length);
  void learn_square(Lane& lane, std::uint64_t length);
  void look_at_form(Lane& lane);
  void learn_form(Lane& lane, FormTable::Form& form);
  [[nodiscard]] bool is_whole_form(const Lane& lane) const;
  [[nodiscard]] std::shared_ptr<Word> learn(const Lane& lane, std::uint64_t start, std::uint64_t length);
  [[nodiscard]] bool write_trace(const Lane& lane, std::uint64_t start, std::uint64_t length, Trace& trace);
  void look_back(Lane& lane, const Word& word, std::uint64_t end);
  void begin_attempts(const std::shared_ptr<Word>& word);
  void uncover(std::vector<Lane::Credit>& credits, std::uint64_t start);
  void uncover_for_new(std::vector<Lane::Credit>& credits, std::uint64_t start, std::uint64_t length);
  void credit(Lane& lane, const std::shared_ptr<Tally>& tally, std::uint64_t start, std::uint64_t end);
  bool count(Tally& tally, std::uint64_t position);
  void count_as_longer(std::vector<Lane::Credit>& credits, std::uint64_t start, std::uint64_t end);
  void uncount(const Lane::Credit& credit);

  HotPathOptions options_;
  Hotness hotness_;
  HotPathStatistics statistics_;
  OpTable ops_;
  UnitTable units_;
  FormTable forms_;
  LaneSet lanes_;
  Lane loose_;  // the components that are too short to be units
  Encoder encoder_;
  Lane* last_lane_ = nullptr;
  std::uint64_t last_serial_ = 0;
  HotPathAnswer answer_;
};

HotPathAnswer HotPathDetector::State::record(const Instruction& instruction) {
  answer_ = {};
  if (ops_.is_full()) ops_.shrink([&](OpId op) { return units_.uses(op); });
  const InternedOp op = ops_.intern(instruction);
  Lane* lane = lanes_.record(instruction, op, statistics_.instructions++);
  last_lane_ = lane;
  last_serial_ = lane == nullptr ? 0 : lane->serial;
  return answer_;
}

void HotPathDetector::State::flush() {
  lanes_.end_all();
  statistics_.misses += loose_.attempts.size();
  reset_loose();
  last_lane_ = nullptr;
}

void HotPathDetector::State::reset_loose() {
  loose_.reset(1, options_.hash_mask);
  loose_.is_loose = true;
}

void HotPathDetector::State::before_append(Lane& lane) {
  forms_.leave(lane);
  // What a component consists of is of interest when the stream turns to another one.
  if (last_lane_ != nullptr && last_lane_ != &lane && last_lane_->serial == last_serial_ &&
      !last_lane_->is_registered && is_whole_form(*last_lane_))
    forms_.enter(*last_lane_);
}

void HotPathDetector::State::after_append(Lane& lane) {
  advance_attempts(lane);
  complete_attempts(lane);
  advance_periods(lane, options_.max_period);
  if (!lane.is_loose) look_at_form(lane);
  look_at_squares(lane);
}

void HotPathDetector::State::ended(Lane& lane) {
  statistics_.misses += lane.attempts.size();
  lane.attempts.clear();
  if (lane.begin() == 0 && lane.size() < options_.min_length) append_loose(lane);
  if (!lane.is_registered) look_at_form(lane);
  if (is_whole_form(lane)) {
    if (!lane.is_registered) forms_.enter(lane);
    if (lane.is_registered) forms_.end(lane);
  }
  forms_.leave(lane);
}

void HotPathDetector::State::dissolved(Lane& lane) {
  forms_.leave(lane);
  uncover(lane.credits, 0);
}

void HotPathDetector::State::append_loose(const Lane& lane) {
  for (std::uint64_t i = lane.begin(); i < lane.end(); ++i) {
    loose_.append(
        {lane.step(i).op, lane.step(i).input_count, lane.uses(i), lane.deaths(i), lane.step(i).position});
    after_append(loose_);
  }
  if (loose_.size() > 4 * options_.max_period) loose_.keep_last(2 * options_.max_period + 1);
}

/// Attempts that go on, and those that begin with the last step.
void HotPathDetector::State::advance_attempts(Lane& lane) {
  const std::uint64_t last = lane.end() - 1;
  std::erase_if(lane.attempts, [&](const Lane::Attempt& attempt) {
    if (!attempt.word->is_dropped && attempt.word->matches(lane, last, attempt.start, attempt.start_slot))
      return false;
    ++statistics_.misses;
    return true;
  });
  const std::uint64_t slot = lane.step(last).first_slot;
  for (const std::shared_ptr<Word>& word : units_.starting_with(lane.step(last).op)) {
    if (lane.attempts.size() >= most_attempts) return;
    if (word->matches(lane, last, last, slot)) lane.attempts.push_back({word, last, slot});
  }
}

/// Of the units that end with the last step the longest is counted. What began inside it is not.
void HotPathDetector::State::complete_attempts(Lane& lane) {
  const std::uint64_t end = lane.end();
  const auto is_complete = [&](const Lane::Attempt& attempt) {
    return attempt.start + attempt.word->length() == end;
  };
  const auto longest = std::find_if(lane.attempts.begin(), lane.attempts.end(), is_complete);
  if (longest == lane.attempts.end()) return;
  const Lane::Attempt attempt = *longest;  // they are in the order of their starts
  std::erase_if(lane.attempts, [&](const Lane::Attempt& other) {
    return is_complete(other) || other.start > attempt.start;
  });
  uncover(lane.credits, attempt.start);
  credit(lane, attempt.word->tally, attempt.start, end);
}

void HotPathDetector::State::look_at_squares(Lane& lane) {
  for (std::size_t i = 0; i < lane.periods.size(); ++i) {
    Lane::Period& period = lane.periods[i];
    const bool was_settled = period.is_settled;
    period.is_settled = is_square(lane, period);
    if (was_settled || !period.is_settled) continue;
    const std::uint64_t length = period.period;
    if (length < options_.min_length || is_rotation(lane, length)) continue;
    if (!lane.is_power(lane.end() - length, length)) learn_square(lane, length);
  }
}

/// Whether the last two rounds contain a unit of that length that is known: then they are a run of it.
bool HotPathDetector::State::is_rotation(const Lane& lane, std::uint64_t length) {
  for (std::uint64_t at = lane.end() - 2 * length; at <= lane.end() - length; ++at)
    for (const std::shared_ptr<Word>& word : units_.starting_with(lane.step(at).op))
      if (word->length() == length && word->matches_window(lane, at)) return true;
  return false;
}

void HotPathDetector::State::learn_square(Lane& lane, std::uint64_t length) {
  const std::uint64_t end = lane.end(), start = end - 2 * length;
  const std::shared_ptr<Word> word = learn(lane, end - length, length);
  if (word == nullptr) return;
  look_back(lane, *word, start);
  uncover_for_new(lane.credits, start, length);
  std::erase_if(lane.attempts, [&](const Lane::Attempt& attempt) {  // those that began inside a round
    return attempt.start > start && attempt.start != start + length;
  });
  credit(lane, word->tally, start, start + length);
  credit(lane, word->tally, start + length, end);
}

/// Counts the occurrences of a new unit before `end`, where it is known to occur.
void HotPathDetector::State::look_back(Lane& lane, const Word& word, std::uint64_t end) {
  std::vector<std::uint64_t> places;
  for (std::uint64_t at = end; places.size() < most_looked_back; places.push_back(at)) {
    const std::uint64_t back = lane.step(at).previous_same;
    if (back == 0 || at < lane.begin() + back) break;
    at -= back;
  }
  std::uint64_t free_from = lane.begin();
  for (auto at = places.rbegin(); at != places.rend(); ++at) {
    const std::uint64_t stop = *at + word.length();
    if (*at < free_from || stop > end || !word.matches_window(lane, *at)) continue;
    const auto behind = std::find_if(lane.credits.begin(), lane.credits.end(),
                                     [&](const Lane::Credit& credit) { return credit.end > *at; });
    if (behind != lane.credits.end() && behind->start < stop) continue;
    credit(lane, word.tally, *at, stop);
    free_from = stop;
  }
}

/// Whether the lane can be all there is of a component, and not an occurrence of a known unit.
bool HotPathDetector::State::is_whole_form(const Lane& lane) const {
  const bool is_counted =
      !lane.credits.empty() && lane.credits.back().start == 0 && lane.credits.back().end == lane.end();
  const bool is_under_way = !lane.attempts.empty() && lane.attempts.front().start == 0;
  return lane.begin() == 0 && lane.size() >= options_.min_length && lane.size() <= options_.max_period &&
         !is_counted && !is_under_way;
}

void HotPathDetector::State::look_at_form(Lane& lane) {
  if (!is_whole_form(lane)) return;
  FormTable::Form* form = forms_.find(lane);
  if (form == nullptr) return;
  const bool is_again = std::any_of(
      form->members.begin(), form->members.end(),
      [&](const FormTable::Member& member) { return member.last_position < lane.first_position; });
  if (is_again && !lane.is_power(0, lane.size())) learn_form(lane, *form);
}

void HotPathDetector::State::learn_form(Lane& lane, FormTable::Form& form) {
  const std::shared_ptr<Word> word = learn(lane, 0, lane.size());
  if (word == nullptr) return;
  std::vector<FormTable::Member> members = forms_.take(form);
  std::sort(members.begin(), members.end(),
            [](const auto& a, const auto& b) { return a.last_position < b.last_position; });
  for (FormTable::Member& member : members) {
    uncover_for_new(member.lane != nullptr ? member.lane->credits : member.credits, 0, word->length());
    if (member.lane != nullptr)
      credit(*member.lane, word->tally, 0, member.lane->end());
    else if (count(*word->tally, member.last_position))
      count_as_longer(member.credits, 0, word->length());
  }
  uncover_for_new(lane.credits, 0, lane.size());
  std::erase_if(lane.attempts, [](const Lane::Attempt& attempt) { return attempt.start > 0; });
  credit(lane, word->tally, 0, lane.end());
}

std::shared_ptr<Word> HotPathDetector::State::learn(const Lane& lane, std::uint64_t start,
                                                    std::uint64_t length) {
  Trace trace;
  if (!write_trace(lane, start, length, trace)) return nullptr;
  statistics_.evictions += units_.make_room(length, statistics_.instructions, hotness_);
  auto word = std::make_shared<Word>(lane, start, length);
  units_.add(word, encoder_.encode(trace));
  begin_attempts(word);
  return word;
}

/// A component that is under way may be an occurrence of the new unit.
void HotPathDetector::State::begin_attempts(const std::shared_ptr<Word>& word) {
  lanes_.for_each_lane([&](Lane& lane) {
    const bool is_candidate = lane.begin() == 0 && lane.size() > 0 && lane.size() < word->length() &&
                              lane.attempts.size() < most_attempts;
    if (!is_candidate) return;
    for (std::uint64_t i = 0; i < lane.size(); ++i)
      if (!word->matches(lane, i, 0, 0)) return;
    lane.attempts.insert(lane.attempts.begin(), {word, 0, 0});
  });
}

/// False if an op of the window was forgotten meanwhile.
bool HotPathDetector::State::write_trace(const Lane& lane, std::uint64_t start, std::uint64_t length,
                                         Trace& trace) {
  Recorder recorder(trace);
  std::vector<Input> inputs;
  std::vector<Output> results;
  for (std::uint64_t i = start; i < start + length; ++i) {
    const OpKindRef kind = ops_.find(lane.step(i).op);
    if (kind == nullptr) return false;
    auto use = lane.uses(i).begin();
    inputs = kind->inputs;
    for (Input& input : inputs)
      if (!input.is_parameter) input.value = (use++)->version;
    results.clear();
    for (const ir::TypeRef& type : kind->results) results.push_back({(use++)->version, type});
    recorder.record({.op = kind->op, .attributes = &kind->attributes, .inputs = inputs}, kind->effect,
                    results);
    for (const std::uint32_t back : lane.deaths_within(i, lane.step(start).first_slot))
      if (const auto value = recorder.find(lane.use(lane.end_slot(i) - back).version);
          value && value->is_result())
        trace.set_freed(*value);
  }
  trace.set_unread_live();
  return true;
}

/// Takes back what was counted at `start` or later, so that something longer can be counted instead.
void HotPathDetector::State::uncover(std::vector<Lane::Credit>& credits, std::uint64_t start) {
  while (!credits.empty() && credits.back().end > start) {
    uncount(credits.back());
    credits.pop_back();
  }
}

/// The same where a unit of `length` is new. A unit that is hot already keeps what lies within one of its
/// rounds: it may be what the stream mostly consists of.
void HotPathDetector::State::uncover_for_new(std::vector<Lane::Credit>& credits, std::uint64_t start,
                                             std::uint64_t length) {
  auto first = credits.end();
  while (first != credits.begin() && std::prev(first)->end > start) --first;
  const auto kept = std::remove_if(first, credits.end(), [&](const Lane::Credit& credit) {
    const bool is_within =
        credit.start >= start && (credit.start - start) / length == (credit.end - 1 - start) / length;
    if (is_within && credit.tally->first_hot_at != 0) return false;
    uncount(credit);
    return true;
  });
  credits.erase(kept, credits.end());
}

void HotPathDetector::State::credit(Lane& lane, const std::shared_ptr<Tally>& tally, std::uint64_t start,
                                    std::uint64_t end) {
  const bool was_hot = count(*tally, lane.last_position(start, end));
  if (was_hot) count_as_longer(lane.credits, start, end);
  auto place = lane.credits.end();
  while (place != lane.credits.begin() && std::prev(place)->end > end) --place;
  lane.credits.insert(place, {tally, start, end, was_hot});
}

/// Instructions of a hot unit that are also counted as those of a longer hot one are hot only once.
void HotPathDetector::State::count_as_longer(std::vector<Lane::Credit>& credits, std::uint64_t start,
                                             std::uint64_t end) {
  for (auto at = credits.rbegin(); at != credits.rend() && at->end > start; ++at) {
    if (!at->is_hot || at->start < start || at->end > end) continue;
    at->is_hot = false;
    statistics_.hot_instructions -= at->tally->length;
  }
}

bool HotPathDetector::State::count(Tally& tally, std::uint64_t position) {
  ++statistics_.hits;
  const bool was_hot = tally.count_one(position, hotness_);
  if (was_hot) statistics_.hot_instructions += tally.length;
  if (tally.heat >= hotness_.threshold) answer_ = {true, tally.length, tally.signature};
  return was_hot;
}

void HotPathDetector::State::uncount(const Lane::Credit& credit) {
  --statistics_.hits;
  if (credit.is_hot) statistics_.hot_instructions -= credit.tally->length;
  credit.tally->uncount_one(hotness_);
}

HotPathStatistics HotPathDetector::State::statistics() const {
  HotPathStatistics out = statistics_;
  out.units = units_.tallies().size();
  return out;
}

std::vector<HotUnit> HotPathDetector::State::units() const {
  std::vector<HotUnit> out;
  for (const auto& tally : units_.tallies())
    out.push_back(describe(*tally, statistics_.instructions, hotness_));
  return out;
}

HotPathDetector::HotPathDetector(const HotPathOptions& options) : state_(std::make_unique<State>(options)) {}
HotPathDetector::~HotPathDetector() = default;
HotPathDetector::HotPathDetector(HotPathDetector&&) noexcept = default;
HotPathDetector& HotPathDetector::operator=(HotPathDetector&&) noexcept = default;

HotPathAnswer HotPathDetector::record(const Instruction& instruction) { return state_->record(instruction); }
void HotPathDetector::flush() { state_->flush(); }
HotPathStatistics HotPathDetector::statistics() const { return state_->statistics(); }

std::vector<HotUnit> HotPathDetector::hot_units() const {
  std::vector<HotUnit> out = state_->units();
  std::erase_if(out, [](const HotUnit& unit) { return unit.first_hot_at == 0; });
  std::sort(out.begin(), out.end(), [](const HotUnit& a, const HotUnit& b) {
    return a.first_hot_at != b.first_hot_at ? a.first_hot_at < b.first_hot_at : a.signature < b.signature;
  });
  return out;
}

std::vector<HotUnit> HotPathDetector::top_units(std::size_t count) const {
  std::vector<HotUnit> out = state_->units();
  std::sort(out.begin(), out.end(), [](const HotUnit& a, const HotUnit& b) {
    return a.count != b.count ? a.count > b.count : a.signature < b.signature;
  });
  if (out.size() > count) out.resize(count);
  return out;
}
