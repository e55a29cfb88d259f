#include "tessera/runtime/cpu/constant_copies.h"

using namespace tessera::runtime;
using namespace tessera::runtime::cpu;

DerivedRef ConstantCopies::find(const void* from, const std::function<bool(const Derived&)>& serves) const {
  const std::lock_guard lock(mutex_);
  const auto [begin, end] = copies_.equal_range(from);
  for (auto at = begin; at != end; ++at)
    if (DerivedRef copy = at->second.lock(); copy != nullptr && serves(*copy)) return copy;
  return nullptr;
}

void ConstantCopies::keep(const void* from, const DerivedRef& copy) {
  const std::lock_guard lock(mutex_);
  std::erase_if(copies_, [](const auto& entry) { return entry.second.expired(); });
  copies_.emplace(from, copy);
}
