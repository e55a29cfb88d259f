#include "tessera/stream/lane.h"

#include <algorithm>

#include "tessera/stream/mix.h"
#include "tessera/stream/unit_table.h"

using namespace tessera;
using namespace tessera::stream;

std::uint64_t Lane::gram(std::uint64_t i, std::uint64_t length, std::uint64_t power) const {
  const bool is_all = i + 1 - base_ == length;
  return step(i).hash - (is_all ? 0 : step(i - length).hash * power);
}

void Lane::reset(std::uint64_t new_serial, std::uint64_t hash_mask) {
  hash_mask_ = hash_mask;
  serial = new_serial;
  first_position = last_position_seen = word_hash = live_values = 0;
  is_registered = is_loose = false;
  attempts.clear();
  credits.clear();
  periods.clear();
  grams.clear();
  base_ = slot_base_ = 0;
  steps_.clear();
  slots_.clear();
  mentions_.clear();
  last_same_.clear();
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
                    .position = letter.position,
                    .hash = hash,
                    .previous_same = static_cast<std::uint32_t>(last_same == 0 ? 0 : index + 1 - last_same)});
  last_same = index + 1;
  word_hash = mix(word_hash, letter.op) & hash_mask_;
  for (const Use& use : letter.uses) {
    std::uint64_t& mention = mentions_[use.version];
    const std::uint64_t slot = end_slot();
    slots_.push_back({use, mention == 0 ? 0 : slot + 1 - mention});
    mention = slot + 1;
    word_hash = mix(word_hash, slots_.back().link) & hash_mask_;
  }
}

void Lane::keep_last(std::uint64_t count) {
  if (count >= size()) return;
  const std::uint64_t first = end() - count;
  const std::uint64_t first_slot = step(first).first_slot;
  slots_.erase(slots_.begin(), slots_.begin() + static_cast<std::ptrdiff_t>(first_slot - slot_base_));
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
  return true;
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
