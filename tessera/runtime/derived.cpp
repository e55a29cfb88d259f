#include "tessera/runtime/derived.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <new>

#include "tessera/base/forked_child.h"
#include "tessera/runtime/memory_pool.h"

using namespace tessera;
using namespace tessera::runtime;

namespace {

/// Of the lists of all sets and pools: they change when something is made or goes, which is rare and takes
/// long. Forms are made and destroyed outside of it.
constinit std::mutex derived_mutex;

}  // namespace

// ---- a pool's

bool DerivedMemory::give_one_up(std::uint64_t rest) noexcept {
  DerivedSet::Entry given_up;  // destroyed without the lock
  const std::lock_guard lock(derived_mutex);
  DerivedSet* of = nullptr;
  std::size_t oldest = 0;
  std::uint64_t last = std::numeric_limits<std::uint64_t>::max();
  for (DerivedSet* set : sets_)
    for (std::size_t i = 0; i < set->entries_.size(); ++i) {
      const DerivedSet::Entry& entry = set->entries_[i];
      const std::uint64_t use = entry.derived->last_use_.load(std::memory_order_relaxed);
      const bool is_idle = entry.memory.get() == this && entry.derived.use_count() == 1;
      if (!is_idle || use >= last || use + rest > launches()) continue;
      of = set, oldest = i, last = use;
    }
  if (of == nullptr) return false;
  given_up = of->take(oldest);
  return true;
}

// ---- a content's

SmallVector<DerivedRef, 8> DerivedSet::all() const {
  const std::lock_guard lock(derived_mutex);
  SmallVector<DerivedRef, 8> out;
  for (const Entry& entry : entries_) out.push_back(entry.derived);
  return out;
}

/// REQUIRES the lock, as what follows.
DerivedSet::Entry DerivedSet::take(std::size_t index) noexcept {
  Entry out = std::move(entries_[index]);
  entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(index));
  has_any_.store(!entries_.empty(), std::memory_order_release);
  release(out);
  return out;
}

void DerivedSet::release(const Entry& entry) noexcept {
  if (entry.memory == nullptr) return;
  entry.memory->bytes_.fetch_sub(entry.bytes);
  const bool has_more = std::any_of(entries_.begin(), entries_.end(),
                                    [&](const Entry& other) { return other.memory == entry.memory; });
  if (!has_more) entry.memory->sets_.erase(this);
}

void DerivedSet::drop_all() noexcept {
  if (is_forked_child()) return;
  std::vector<Entry> dropped;  // destroyed without the lock
  const std::lock_guard lock(derived_mutex);
  dropped.swap(entries_);
  has_any_.store(false, std::memory_order_release);
  for (const Entry& entry : dropped) release(entry);
}

/// One form of any size always fits.
bool DerivedSet::fits_bound(std::size_t bytes, const DerivedMemory& memory) {
  for (;;) {
    Entry given_up;  // destroyed without the lock
    const std::lock_guard lock(derived_mutex);
    std::size_t sum = bytes, largest = std::max(source_bytes_, bytes), oldest = entries_.size();
    std::uint64_t last = std::numeric_limits<std::uint64_t>::max();
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      const Entry& entry = entries_[i];
      if (entry.memory == nullptr) continue;
      sum += entry.bytes;
      largest = std::max(largest, entry.bytes);
      const std::uint64_t use = entry.derived->last_use_.load(std::memory_order_relaxed);
      if (entry.derived.use_count() > 1 || use >= last || use + min_rest > memory.launches()) continue;
      oldest = i, last = use;
    }
    if (sum <= max_times_source * largest) return true;
    if (oldest == entries_.size()) return false;
    given_up = take(oldest);
  }
}

bool DerivedSet::has_room(std::size_t bytes, MemoryPool& pool) {
  if (!fits_bound(bytes, *pool.derived()) || !pool.reserve_derived(bytes)) return false;
  pool.derived()->bytes_.fetch_sub(bytes);
  return true;
}

bool DerivedSet::keep(const DerivedRef& derived, MemoryPool& pool) {
  const std::shared_ptr<DerivedMemory>& memory = pool.derived();
  const std::size_t bytes = derived->byte_size();
  if (!fits_bound(bytes, *memory) || !pool.reserve_derived(bytes)) return false;
  memory->note_use(*derived);
  try {
    const std::lock_guard lock(derived_mutex);
    entries_.reserve(entries_.size() + 1);
    memory->sets_.insert(this);
    entries_.push_back({derived, memory, bytes});
    has_any_.store(true, std::memory_order_release);
    return true;
  } catch (const std::bad_alloc&) {
    memory->bytes_.fetch_sub(bytes);
    return false;
  }
}

void DerivedSet::hand_out(DerivedRef derived) {
  const std::lock_guard lock(derived_mutex);
  entries_.push_back({std::move(derived), nullptr, 0});
  has_any_.store(true, std::memory_order_release);
}
