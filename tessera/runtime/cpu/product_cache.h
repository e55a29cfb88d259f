// Products and convolutions that were made before, by their specification. Making one takes a tenth of a
// millisecond, finding one a tenth of a microsecond.
#pragma once

#include <algorithm>
#include <list>
#include <mutex>
#include <unordered_map>

#include "tessera/runtime/cpu/convolution.h"
#include "tessera/runtime/cpu/matmul.h"

namespace tessera::runtime::cpu {

/// Keeps the most recently used objects T, made by T::create(spec, library). Thread-safe. What was dropped
/// lives on with those who hold it.
template <class Spec, class T>
class SpecCache {
 public:
  using Made = std::shared_ptr<const T>;

  explicit SpecCache(std::size_t capacity, ProductLibrary library = ProductLibrary::best)
      : capacity_(std::max<std::size_t>(capacity, 1)), library_(library) {}

  /// Makes what is not there. Two threads that miss at once both make one, and one of them is kept.
  [[nodiscard]] Result<Made> get(const Spec& spec) {
    const Hash128 hash = spec.hash();
    if (auto found = find(hash, spec)) return found;
    Made made = TESSERA_TRY(T::create(spec, library_));
    const std::lock_guard lock(mutex_);
    ++misses_;
    if (auto found = find_locked(hash, spec)) return found;
    entries_.push_front({hash, spec, made});
    places_[hash] = entries_.begin();
    if (entries_.size() > capacity_) drop_last();
    return made;
  }

  [[nodiscard]] std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return entries_.size();
  }
  [[nodiscard]] std::size_t misses() const {
    const std::lock_guard lock(mutex_);
    return misses_;
  }

 private:
  struct Entry {
    Hash128 hash;
    Spec spec;
    Made made;
  };
  using Entries = std::list<Entry>;

  Made find(const Hash128& hash, const Spec& spec) {
    const std::lock_guard lock(mutex_);
    return find_locked(hash, spec);
  }
  /// A hash finds, equality decides.
  Made find_locked(const Hash128& hash, const Spec& spec) {
    const auto place = places_.find(hash);
    if (place == places_.end() || !(place->second->spec == spec)) return nullptr;
    entries_.splice(entries_.begin(), entries_, place->second);
    return entries_.front().made;
  }
  void drop_last() {
    const auto last = std::prev(entries_.end());
    // After a collision of hashes the place is another entry's.
    if (const auto place = places_.find(last->hash); place != places_.end() && place->second == last)
      places_.erase(place);
    entries_.erase(last);
  }

  const std::size_t capacity_;
  const ProductLibrary library_;
  mutable std::mutex mutex_;
  Entries entries_;  ///< the most recently used first
  std::unordered_map<Hash128, typename Entries::iterator> places_;
  std::size_t misses_ = 0;
};

using MatmulCache = SpecCache<MatmulSpec, Matmul>;
using ConvolutionCache = SpecCache<ConvolutionSpec, Convolution>;

}  // namespace tessera::runtime::cpu
