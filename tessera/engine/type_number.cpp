#include "tessera/engine/type_number.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <unordered_map>

#include "tessera/base/hash.h"
#include "tessera/base/small_vector.h"

using namespace tessera;
using namespace tessera::engine;

namespace {

struct ArrayType {
  ir::Dtype dtype;
  SmallVector<std::int64_t, 6> sizes;
};

class TypeNumbers {
 public:
  TypeNumber number(ir::Dtype dtype, std::span<const std::int64_t> sizes) {
    Hasher hasher;
    hasher.add(static_cast<std::uint64_t>(dtype)).add(sizes.size());
    for (const std::int64_t size : sizes) hasher.add(static_cast<std::uint64_t>(size));
    const Hash128 hash = hasher.finish();
    const std::lock_guard lock(mutex_);
    const auto [first, last] = known_.equal_range(hash);
    const auto same = std::find_if(first, last, [&](const auto& entry) {
      const ArrayType& type = entry.second.type;
      return type.dtype == dtype &&
             std::equal(type.sizes.begin(), type.sizes.end(), sizes.begin(), sizes.end());
    });
    if (same != last) return same->second.number;
    if (next_ == std::numeric_limits<TypeNumber>::max()) return no_type_number;
    if (known_.size() >= capacity) known_.clear();
    known_.emplace(hash, Known{{dtype, {sizes.begin(), sizes.end()}}, next_});
    return next_++;
  }

 private:
  struct Known {
    ArrayType type;
    TypeNumber number;
  };
  static constexpr std::size_t capacity = 1 << 14;

  std::mutex mutex_;
  std::unordered_multimap<Hash128, Known> known_;
  TypeNumber next_ = no_type_number + 1;  ///< numbers are never used again, so a forgotten one finds nothing
};

}  // namespace

TypeNumber tessera::engine::type_number(ir::Dtype dtype, std::span<const std::int64_t> sizes) {
  static auto& numbers = *new TypeNumbers;  // never destroyed: static objects of the program may record
  return numbers.number(dtype, sizes);
}
