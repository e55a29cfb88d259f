// A map that forgets: what was not asked for since `capacity` other keys came goes away, at the latest after
// twice as many. For what a stream names that has no end.
#pragma once

#include <cstddef>
#include <unordered_map>
#include <utility>

namespace tessera::stream {

template <class Key, class T>
class RecentMap {
 public:
  explicit RecentMap(std::size_t capacity) : capacity_(capacity) {}

  /// Keeps everything from now on.
  void keep_all() { capacity_ = ~std::size_t{0}; }

  /// Null if it is not there, or forgotten. Valid until the next call.
  [[nodiscard]] T* find(const Key& key) {
    if (const auto at = young_.find(key); at != young_.end()) return &at->second;
    const auto at = old_.find(key);
    if (at == old_.end()) return nullptr;
    T value = std::move(at->second);
    old_.erase(at);
    return &insert(key, std::move(value));
  }
  /// What is there, or else `value`, which is put there. Valid until the next call.
  T& obtain(const Key& key, T value) {
    T* const known = find(key);
    return known != nullptr ? *known : insert(key, std::move(value));
  }
  void set(const Key& key, T value) { obtain(key, T()) = std::move(value); }
  void erase(const Key& key) {
    young_.erase(key);
    old_.erase(key);
  }
  [[nodiscard]] std::size_t size() const { return young_.size() + old_.size(); }

 private:
  T& insert(const Key& key, T value) {
    if (young_.size() >= capacity_) {
      old_ = std::move(young_);
      young_ = {};
    }
    return young_.insert_or_assign(key, std::move(value)).first->second;
  }

  std::size_t capacity_;
  std::unordered_map<Key, T> young_, old_;  ///< a key is in one of them
};

}  // namespace tessera::stream
