#include "tessera/runtime/cpu/constant_sets.h"

using namespace tessera::runtime;
using namespace tessera::runtime::cpu;

std::shared_ptr<DerivedSet> ConstantSets::of(const void* from, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (const auto known = sets_.find(from); known != sets_.end())
    if (auto set = known->second.lock()) return set;
  std::erase_if(sets_, [](const auto& entry) { return entry.second.expired(); });
  auto made = std::make_shared<DerivedSet>(bytes);
  sets_[from] = made;
  return made;
}
