#include "tessera/stream/form_table.h"

#include <algorithm>

using namespace tessera;
using namespace tessera::stream;

namespace {

constexpr std::size_t most_members = 64;  // more that ran at the same time are not counted

bool same_letters(const Lane& a, const Lane& b) {
  if (a.size() != b.size()) return false;
  for (std::uint64_t i = 0; i < a.size(); ++i)
    if (a.step(i).op != b.step(i).op) return false;
  for (std::uint64_t slot = 0; slot < a.end_slot(); ++slot)
    if (a.link(slot) != b.link(slot)) return false;
  for (std::uint64_t i = 0; i < a.size(); ++i) {
    const auto x = a.deaths(i), y = b.deaths(i);
    if (!std::equal(x.begin(), x.end(), y.begin(), y.end())) return false;
  }
  return true;
}

}  // namespace

bool FormTable::has_letters_of(const Form& form, const Lane& lane) {
  if (form.word) return form.word->length() == lane.size() && form.word->matches_window(lane, 0);
  return same_letters(*form.members.front().lane, lane);
}

FormTable::Forms::iterator FormTable::find_form(const Lane& lane) {
  const auto [first, last] = by_hash_.equal_range(lane.word_hash);
  const auto at =
      std::find_if(first, last, [&](const auto& entry) { return has_letters_of(*entry.second, lane); });
  return at == last ? forms_.end() : at->second;
}

FormTable::Form* FormTable::find(const Lane& lane) {
  const auto form = find_form(lane);
  return form == forms_.end() ? nullptr : &*form;
}

void FormTable::enter(Lane& lane) {
  const auto form = find_form(lane);
  if (form == forms_.end()) {
    forms_.push_front({.hash = lane.word_hash, .word = {}, .members = {}});
    by_hash_.emplace(lane.word_hash, forms_.begin());
  } else {
    if (form->members.size() >= most_members) return;
    forms_.splice(forms_.begin(), forms_, form);
  }
  forms_.front().members.push_back({.lane = &lane,
                                    .first_position = lane.first_position,
                                    .last_position = lane.last_position_seen,
                                    .credits = {}});
  lane.is_registered = true;
}

void FormTable::leave(Lane& lane) {
  if (!lane.is_registered) return;
  lane.is_registered = false;
  const auto form = find_form(lane);
  std::erase_if(form->members, [&](const Member& member) { return member.lane == &lane; });
  if (form->members.empty()) erase(form);
}

void FormTable::end(Lane& lane) {
  const auto form = find_form(lane);
  lane.is_registered = false;
  for (Member& member : form->members) {
    if (member.lane != &lane) continue;
    member.lane = nullptr;
    member.credits = lane.credits;
  }
  if (!form->word) {
    form->word.emplace(lane, 0, lane.size());
    letters_ += lane.size();
  }
  shrink();
}

std::vector<FormTable::Member> FormTable::take(Form& form) {
  std::vector<Member> members = std::move(form.members);
  for (Member& member : members)
    if (member.lane != nullptr) member.lane->is_registered = false;
  const auto [first, last] = by_hash_.equal_range(form.hash);
  erase(std::find_if(first, last, [&](const auto& entry) { return &*entry.second == &form; })->second);
  return members;
}

void FormTable::erase(Forms::iterator form) {
  if (form->word) letters_ -= form->word->length();
  const auto [first, last] = by_hash_.equal_range(form->hash);
  by_hash_.erase(std::find_if(first, last, [&](const auto& entry) { return entry.second == form; }));
  forms_.erase(form);
}

void FormTable::shrink() {
  while (forms_.size() > capacity_ || letters_ > letter_capacity_) {
    const auto oldest = std::prev(forms_.end());
    for (Member& member : oldest->members)
      if (member.lane != nullptr) member.lane->is_registered = false;
    erase(oldest);
  }
}
