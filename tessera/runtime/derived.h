// What runtimes derive from contents that stay, and remember: weights in the order that a library likes.
//
//   auto packed = set.find<PackedProduct>([&](const PackedProduct& one) { return one.serves(spec); });
//   if (packed == nullptr && set.has_room(bytes, pool)) (void)set.keep(packed = make(), pool);
//
// A form is found by what it is for: all that are known are looked at, and equality decides. What is
// remembered is bounded by the size of what it is derived from, and counted against the limit of the pool it
// is for; what was not used for the longest time gives way, first to buffers and then to other forms.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_set>
#include <utility>
#include <vector>

#include "tessera/base/small_vector.h"

namespace tessera::runtime {

class DerivedSet;
class MemoryPool;

/// Something that a runtime made from contents and may use as long as they stay.
class Derived {
 public:
  virtual ~Derived() = default;
  [[nodiscard]] virtual std::size_t byte_size() const = 0;

 private:
  friend class DerivedMemory;
  friend class DerivedSet;
  mutable std::atomic<std::uint64_t> last_use_{0};
};
using DerivedRef = std::shared_ptr<const Derived>;

/// The derived bytes of one pool. Thread-safe.
class DerivedMemory {
 public:
  [[nodiscard]] std::uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  /// The number of launches, by which uses are told from later ones. Launches at once may count as one.
  [[nodiscard]] std::uint64_t launches() const { return launches_.load(std::memory_order_relaxed); }
  void count_launch() { launches_.store(launches() + 1, std::memory_order_relaxed); }
  void note_use(const Derived& derived) const {
    if (derived.last_use_.load(std::memory_order_relaxed) != launches())
      derived.last_use_.store(launches(), std::memory_order_relaxed);
  }

  /// Gives up the form that was not used for the longest time, if nobody uses it now and nobody did in the
  /// last `rest` launches. False if there is none.
  bool give_one_up(std::uint64_t rest) noexcept;

 private:
  friend class DerivedSet;
  friend class MemoryPool;

  std::atomic<std::uint64_t> bytes_{0}, launches_{1};
  std::unordered_set<DerivedSet*> sets_;  ///< that have some of it; guarded by the lock of all sets
};

/// The forms that were derived from one content. Thread-safe, but for clear() and the end, during which
/// nobody may use the content.
class DerivedSet {
 public:
  /// How often the size of a content its forms may take, and in how many launches a form is not used that
  /// gives way to another. Forms that take turns in fewer launches than this would be made in each of them.
  static constexpr std::size_t max_times_source = 4;
  static constexpr std::uint64_t min_rest = 16;

  /// Of a content of so many bytes.
  explicit DerivedSet(std::size_t source_bytes) : source_bytes_(source_bytes) {}
  DerivedSet(const DerivedSet&) = delete;
  DerivedSet& operator=(const DerivedSet&) = delete;
  ~DerivedSet() { clear(); }

  /// The first form of type T that `serves` says yes to, or null. `serves` may take its time.
  template <class T, class Serves>
  [[nodiscard]] std::shared_ptr<const T> find(const Serves& serves) const {
    if (!has_any_.load(std::memory_order_acquire)) return nullptr;
    for (DerivedRef& known : all())
      if (const auto* form = dynamic_cast<const T*>(known.get()); form != nullptr && serves(*form))
        return std::static_pointer_cast<const T>(std::move(known));
    return nullptr;
  }
  /// Whether a form of so many bytes would be kept for this pool. What rests gives way to it.
  [[nodiscard]] bool has_room(std::size_t bytes, MemoryPool& pool);
  /// False if there is no room: it is not remembered.
  bool keep(const DerivedRef& derived, MemoryPool& pool);
  /// Keeps what addresses were handed out of for as long as the contents stay: it does not give way, and
  /// counts for no pool.
  void hand_out(DerivedRef derived);
  /// The contents change: all forms go.
  void clear() noexcept {
    if (has_any_.load(std::memory_order_relaxed)) drop_all();
  }
  [[nodiscard]] std::size_t size() const { return all().size(); }

 private:
  friend class DerivedMemory;
  struct Entry {
    DerivedRef derived;
    std::shared_ptr<DerivedMemory> memory;  ///< that counts it; null: none does
    std::size_t bytes = 0;
  };

  [[nodiscard]] SmallVector<DerivedRef, 8> all() const;
  void drop_all() noexcept;
  [[nodiscard]] bool fits_bound(std::size_t bytes, const DerivedMemory& memory);
  [[nodiscard]] Entry take(std::size_t index) noexcept;
  void release(const Entry& entry) noexcept;

  const std::size_t source_bytes_;
  std::atomic<bool> has_any_{false};
  std::vector<Entry> entries_;
};

}  // namespace tessera::runtime
