#include "tessera/engine/plan_cache.h"

#include <algorithm>
#include <cstring>
#include <utility>

using namespace tessera;
using namespace tessera::engine;

namespace {

bool has_words(const PlanEntry& entry, const PlanKey& key) {
  return entry.words.size() == key.words.size() &&
         std::memcmp(entry.words.data(), key.words.begin(), key.words.size() * sizeof(std::uint32_t)) == 0;
}

}  // namespace

std::size_t PlanEntry::bytes() const {
  std::size_t out = words.size() * sizeof words[0] + rules.rules().size() * sizeof(SizeRule);
  out += outline.ops.size() * sizeof(OutlineOp);
  if (plan != nullptr)
    out += plan->steps.size() * sizeof(plan::Step) + plan->values.size() * sizeof(plan::Value);
  for (const auto& instance : idle) out += instance->bytes();
  return out;
}

PlanEntryRef PlanCache::find(const PlanKey& key, std::vector<std::int64_t>& symbols) {
  const auto [first, last] = entries_.equal_range(key.hash);
  for (auto it = first; it != last; ++it)
    if (has_words(*it->second, key) && it->second->rules.match(key.sizes, symbols)) {
      it->second->last_used = now_;
      return it->second;
    }
  return nullptr;
}

std::vector<PlanEntryRef> PlanCache::with_words(const PlanKey& key) const {
  std::vector<PlanEntryRef> out;
  const auto [first, last] = entries_.equal_range(key.hash);
  for (auto it = first; it != last; ++it)
    if (has_words(*it->second, key)) out.push_back(it->second);
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a->last_used < b->last_used; });
  return out;
}

void PlanCache::add(std::uint64_t hash, PlanEntryRef entry) {
  entry->last_used = now_;
  entries_.emplace(hash, std::move(entry));
}

void PlanCache::remove(const PlanEntryRef& entry) {
  std::erase_if(entries_, [&](const auto& known) { return known.second == entry; });
}

void PlanCache::shrink(std::vector<PlanEntryRef>& dropped) {
  std::size_t bytes = 0;
  for (const auto& [hash, entry] : entries_) bytes += entry->bytes();
  while (entries_.size() > options_.max_entries || (bytes > options_.max_bytes && entries_.size() > 1)) {
    const auto oldest = std::min_element(entries_.begin(), entries_.end(), [](const auto& a, const auto& b) {
      return a.second->last_used < b.second->last_used;
    });
    bytes -= std::min(bytes, oldest->second->bytes());
    dropped.push_back(oldest->second);
    entries_.erase(oldest);
  }
}

void PlanCache::take_idle(std::vector<std::unique_ptr<PlanInstance>>& out) {
  for (const auto& [hash, entry] : entries_) {
    std::move(entry->idle.begin(), entry->idle.end(), std::back_inserter(out));
    entry->idle.clear();
  }
}

/// A set of few places per hash: the coldest gives way.
Heat& PlanCache::heat(std::uint64_t hash) {
  Heat* set = &heat_[(hash % sets) * ways];
  Heat* place = set;
  for (Heat* h = set; h != set + ways; ++h) {
    if (h->hash == hash) {
      for (; h->count > 0 && options_.decay > 0 && now_ - h->last_seen > options_.decay;
           h->last_seen += options_.decay)
        h->count /= 2;
      ++h->count;
      h->last_seen = now_;
      return *h;
    }
    if (h->last_seen < place->last_seen) place = h;
  }
  return *place = {.hash = hash, .last_seen = now_, .count = 1};
}

void PlanCache::remember(const PlanKey& key) {
  Remembered& place = remembered_[next_remembered_];
  next_remembered_ = (next_remembered_ + 1) % max_remembered;
  place.hash = key.hash;
  place.sizes.assign(key.sizes.begin(), key.sizes.end());
}

std::optional<std::vector<std::int64_t>> PlanCache::take_remembered(const PlanKey& key) {
  const auto found = std::find_if(remembered_.begin(), remembered_.end(), [&](const Remembered& place) {
    return place.hash == key.hash && place.sizes.size() == key.sizes.size() && !place.sizes.empty();
  });
  if (found == remembered_.end()) return std::nullopt;
  return std::exchange(found->sizes, {});
}

void PlanCache::streamed(std::uint64_t hash, std::uint64_t nanoseconds) {
  Heat* set = &heat_[(hash % sets) * ways];
  for (Heat* h = set; h != set + ways; ++h)
    if (h->hash == hash)
      h->streamed_ns = h->streamed_ns == 0 ? nanoseconds : std::min(h->streamed_ns, nanoseconds);
}

std::size_t PlanCache::ready_count() const {
  return static_cast<std::size_t>(std::count_if(entries_.begin(), entries_.end(), [](const auto& known) {
    return known.second->state == PlanEntry::State::ready;
  }));
}

PlanEntryRef PlanCache::nearest(const Outline& outline) const {
  PlanEntryRef best;
  std::size_t most = 0;
  for (const auto& [hash, entry] : entries_) {
    if (entry->state != PlanEntry::State::ready) continue;
    const std::size_t common = common_ops(entry->outline, outline);
    if (best == nullptr || common > most || (common == most && entry->last_used > best->last_used)) {
      best = entry;
      most = common;
    }
  }
  return best;
}
