// Copies of constants in the order that a library likes, shared by the calls that read the same constant: the
// steps of a recurrence written out have one matrix.
#pragma once

#include <mutex>
#include <unordered_map>

#include "tessera/runtime/buffer.h"

namespace tessera::runtime::cpu {

/// Thread-safe. A copy lives as long as some call holds it, and so does the constant.
class ConstantCopies {
 public:
  /// The first copy of the constant at `from` that `serves` says yes to, or null.
  [[nodiscard]] DerivedRef find(const void* from, const std::function<bool(const Derived&)>& serves) const;
  void keep(const void* from, const DerivedRef& copy);

 private:
  mutable std::mutex mutex_;
  std::unordered_multimap<const void*, std::weak_ptr<const Derived>> copies_;
};

}  // namespace tessera::runtime::cpu
