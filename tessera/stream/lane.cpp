#include "tessera/stream/lane.h"

#include <algorithm>

#include "tessera/stream/mix.h"
#include "tessera/stream/unit_table.h"

using namespace tessera;
using namespace tessera::stream;

namespace {

constexpr std::size_t most_kept_steps = 4096;  // of a lane that is empty

}  // namespace

std::uint64_t Lane::gram(std::uint64_t i, std::uint64_t length, std::uint64_t power) const {
  const bool is_all = i + 1 - base_ == length;
  return step(i).hash - (is_all ? 0 : step(i - length).hash * power);
}

void Lane::reset(std::uint64_t new_serial, std::uint64_t hash_mask) {
  hash_mask_ = hash_mask;
  serial = new_serial;
  first_position = last_position_seen = word_hash = live_values = 0;
  is_registered = is_loose = has_deaths_ = false;
  attempts.clear();
  credits.clear();
  periods.clear();
  grams.clear();
  base_ = slot_base_ = death_base_ = 0;
  if (steps_.capacity() > most_kept_steps) release();
  steps_.clear();
  links_.clear();
  uses_.clear();
  deaths_.clear();
  mentions_.clear();
  last_same_.clear();
}

/// Gives its memory back: many lanes wait to be used again, and few of them were long.
void Lane::release() {
  steps_ = {};
  links_ = {};
  uses_ = {};
  deaths_ = {};
  credits = {};
  mentions_ = {};
  last_same_ = {};
  grams = {};
}

void Lane::append(const Letter& letter) {
  const std::uint64_t index = end();
  if (index == 0) first_position = letter.position;
  first_position = std::min(first_position, letter.position);
  last_position_seen = std::max(last_position_seen, letter.position);
  std::uint64_t& last_same = last_same_[letter.op];
  const std::uint64_t hash = (steps_.empty() ? 0 : steps_.back().hash) * gram_base + mix(letter.op, 1);
  steps_.push_back({.op = letter.op,
                    .input_count = letter.input_count,
                    .first_slot = end_slot(),
                    .first_death = death_base_ + deaths_.size(),
                    .position = letter.position,
                    .hash = hash,
                    .previous_same = static_cast<std::uint32_t>(last_same == 0 ? 0 : index + 1 - last_same)});
  last_same = index + 1;
  word_hash = mix(word_hash, letter.op) & hash_mask_;
  for (const Use& use : letter.uses) {
    std::uint64_t& mention = mentions_[use.version];
    const std::uint64_t slot = end_slot();
    links_.push_back(static_cast<std::uint32_t>(mention == 0 ? 0 : slot + 1 - mention));
    uses_.push_back(use);
    mention = slot + 1;
    word_hash = mix(word_hash, links_.back()) & hash_mask_;
  }
  has_deaths_ = has_deaths_ || !letter.deaths.empty();
  for (const std::uint32_t death : letter.deaths) {
    deaths_.push_back(death);
    word_hash = mix(word_hash, ~std::uint64_t{death}) & hash_mask_;
  }
}

void Lane::keep_last(std::uint64_t count) {
  if (count >= size()) return;
  const std::uint64_t first = end() - count;
  const std::uint64_t first_slot = step(first).first_slot;
  const auto slots = static_cast<std::ptrdiff_t>(first_slot - slot_base_);
  links_.erase(links_.begin(), links_.begin() + slots);
  uses_.erase(uses_.begin(), uses_.begin() + slots);
  const std::uint64_t first_death = step(first).first_death;
  deaths_.erase(deaths_.begin(), deaths_.begin() + static_cast<std::ptrdiff_t>(first_death - death_base_));
  death_base_ = first_death;
  steps_.erase(steps_.begin(), steps_.begin() + static_cast<std::ptrdiff_t>(first - base_));
  base_ = first;
  slot_base_ = first_slot;
  mentions_.erase_if([&](std::uint64_t mention) { return mention <= slot_base_; });
  last_same_.erase_if([&](std::uint64_t same) { return same <= base_; });
  grams.erase_if([&](std::uint64_t seen) { return seen <= base_; });
  std::erase_if(credits, [&](const Credit& credit) { return credit.end <= base_; });
}

bool Lane::same_letter(std::uint64_t i, std::uint64_t i_start, std::uint64_t j, std::uint64_t j_start) const {
  if (step(i).op != step(j).op) return false;
  const std::uint64_t i_slot = step(i_start).first_slot, j_slot = step(j_start).first_slot;
  std::uint64_t b = step(j).first_slot;
  for (std::uint64_t a = step(i).first_slot; a < end_slot(i); ++a, ++b)
    if (link_within(a, i_slot) != link_within(b, j_slot)) return false;
  if (!has_deaths_) return true;
  const auto x = deaths_within(i, i_slot), y = deaths_within(j, j_slot);
  return std::equal(x.begin(), x.end(), y.begin(), y.end());
}

bool Lane::same_window(std::uint64_t i, std::uint64_t j, std::uint64_t length) const {
  for (std::uint64_t k = 0; k < length; ++k)
    if (!same_letter(i + k, i, j + k, j)) return false;
  return true;
}

bool Lane::is_power(std::uint64_t start, std::uint64_t length) const {
  for (std::uint64_t part = 1; part <= length / 2; ++part) {
    if (length % part != 0 || step(start).op != step(start + part).op) continue;
    bool is_same = true;
    for (std::uint64_t at = start + part; is_same && at < start + length; at += part)
      is_same = same_window(at - part, at, part);
    if (is_same) return true;
  }
  return false;
}

std::uint64_t Lane::last_position(std::uint64_t start, std::uint64_t end) const {
  std::uint64_t last = 0;
  for (std::uint64_t i = start; i < end; ++i) last = std::max(last, step(i).position);
  return last;
}
