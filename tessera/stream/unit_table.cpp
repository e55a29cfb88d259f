#include "tessera/stream/unit_table.h"

#include <algorithm>

using namespace tessera;
using namespace tessera::stream;

std::uint64_t Tally::heat_at(std::uint64_t position, const Hotness& hotness) const {
  if (hotness.decay == 0 || position <= last_position) return heat;
  return heat >> std::min<std::uint64_t>((position - last_position) / hotness.decay, 63);
}

bool Tally::count_one(std::uint64_t position, const Hotness& hotness) {
  const bool was_hot = is_hot_at(position, hotness);
  heat = heat_at(position, hotness) + 1;
  last_position = std::max(last_position, position);
  ++count;
  if (first_hot_at == 0 && heat >= hotness.threshold) first_hot_at = position + 1;
  return was_hot;
}

void Tally::uncount_one(const Hotness& hotness) {
  --count;
  heat -= std::min<std::uint64_t>(heat, 1);
  if (count < hotness.threshold) first_hot_at = 0;
}

Word::Word(const Lane& lane, std::uint64_t start, std::uint64_t length) {
  const std::uint64_t start_slot = lane.step(start).first_slot;
  for (std::uint64_t i = start; i < start + length; ++i) {
    ops.push_back(lane.step(i).op);
    first_slot.push_back(static_cast<std::uint32_t>(lane.step(i).first_slot - start_slot));
    for (std::uint64_t slot = lane.step(i).first_slot; slot < lane.end_slot(i); ++slot)
      links.push_back(lane.link_within(slot, start_slot));
    first_death.push_back(static_cast<std::uint32_t>(deaths.size()));
    const auto die = lane.deaths_within(i, start_slot);
    deaths.insert(deaths.end(), die.begin(), die.end());
  }
  first_slot.push_back(static_cast<std::uint32_t>(links.size()));
  first_death.push_back(static_cast<std::uint32_t>(deaths.size()));
}

bool Word::matches(const Lane& lane, std::uint64_t i, std::uint64_t start, std::uint64_t start_slot) const {
  const std::uint64_t at = i - start;
  if (ops[at] != lane.step(i).op) return false;
  std::uint64_t slot = lane.step(i).first_slot;
  for (std::uint64_t k = first_slot[at]; k < first_slot[at + 1]; ++k, ++slot)
    if (links[k] != lane.link_within(slot, start_slot)) return false;
  if (deaths.empty() && !lane.has_deaths()) return true;
  const auto die = lane.deaths_within(i, start_slot);
  return std::equal(die.begin(), die.end(), deaths.begin() + first_death[at],
                    deaths.begin() + first_death[at + 1]);
}

bool Word::matches_window(const Lane& lane, std::uint64_t start) const {
  const std::uint64_t start_slot = lane.step(start).first_slot;
  for (std::uint64_t i = start; i < start + length(); ++i)
    if (!matches(lane, i, start, start_slot)) return false;
  return true;
}

std::span<const std::shared_ptr<Word>> UnitTable::starting_with(OpId op) {
  const auto* found = by_first_op_.find(op);
  return found == nullptr ? std::span<const std::shared_ptr<Word>>() : *found;
}

void UnitTable::add(const std::shared_ptr<Word>& word, const Encoding& encoding) {
  auto& same_signature = by_signature_[encoding.signature];
  const auto at = std::find_if(same_signature.begin(), same_signature.end(),
                               [&](const auto& tally) { return tally->view() == encoding.view(); });
  if (at != same_signature.end()) {
    word->tally = *at;
  } else {
    auto tally = std::make_shared<Tally>();
    tally->signature = encoding.signature;
    tally->skeleton.assign(encoding.skeleton.begin(), encoding.skeleton.end());
    tally->sizes.assign(encoding.sizes.begin(), encoding.sizes.end());
    tally->length = word->length();
    same_signature.push_back(tally);
    tallies_.push_back(tally);
    word->tally = tally;
  }
  auto& words = by_first_op_[word->ops.front()];
  const auto shorter = std::find_if(words.begin(), words.end(),
                                    [&](const auto& other) { return other->length() < word->length(); });
  words.insert(shorter, word);
  letters_ += word->length();
  for (const OpId op : word->ops) ++op_uses_[op];
}

void UnitTable::drop_words(const Tally& tally) {
  std::vector<std::uint64_t> without_words;
  by_first_op_.for_each([&](std::uint64_t op_id, std::vector<std::shared_ptr<Word>>& words) {
    std::erase_if(words, [&](const std::shared_ptr<Word>& word) {
      if (word->tally.get() != &tally) return false;
      word->is_dropped = true;
      letters_ -= word->length();
      for (const OpId op : word->ops)
        if (--op_uses_[op] == 0) op_uses_.erase(op);
      return true;
    });
    if (words.empty()) without_words.push_back(op_id);
  });
  for (const std::uint64_t op : without_words) by_first_op_.erase(op);
}

std::size_t UnitTable::make_room(std::size_t letters, std::uint64_t position, const Hotness& hotness) {
  if (tallies_.size() < capacity_ && letters_ + letters <= letter_capacity_) return 0;
  // An eighth more than must go, so that not every new unit has to look at all of them.
  const std::size_t most_units = capacity_ - (capacity_ + 7) / 8;
  const std::size_t most_letters = letter_capacity_ - letter_capacity_ / 8;
  std::stable_sort(tallies_.begin(), tallies_.end(), [&](const auto& a, const auto& b) {
    const std::uint64_t x = a->heat_at(position, hotness), y = b->heat_at(position, hotness);
    return x != y ? x > y : a->last_position > b->last_position;
  });
  std::size_t dropped = 0;
  while (!tallies_.empty() && (tallies_.size() > most_units || letters_ + letters > most_letters)) {
    const std::shared_ptr<Tally> tally = tallies_.back();
    tallies_.pop_back();
    drop_words(*tally);
    auto& same_signature = by_signature_[tally->signature];
    std::erase(same_signature, tally);
    if (same_signature.empty()) by_signature_.erase(tally->signature);
    ++dropped;
  }
  return dropped;
}
