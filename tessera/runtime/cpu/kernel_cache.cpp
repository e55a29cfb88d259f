#include "tessera/runtime/cpu/kernel_cache.h"

#include <algorithm>

using namespace tessera;
using namespace tessera::runtime::cpu;

std::shared_ptr<CompiledKernel> KernelCache::get(const kernel::Kernel& kernel) {
  const Hash128 key = hash_(kernel);
  const std::lock_guard lock(mutex_);
  for (const auto& known : kernels_[key])
    if (equal(known->kernel(), kernel)) return known;
  if (count_ >= limit_) drop_unused();  // may take the list that was just made
  auto made = std::make_shared<CompiledKernel>(kernel, options_);
  kernels_[key].push_back(made);
  ++count_;
  return made;
}

std::size_t KernelCache::size() const {
  const std::lock_guard lock(mutex_);
  return count_;
}

KernelCache::Troubles KernelCache::troubles() const {
  Troubles out;
  const std::lock_guard lock(mutex_);
  for (const auto& [key, list] : kernels_)
    for (const auto& kernel : list) {
      out.why_interpreted = std::max(out.why_interpreted, kernel->why_interpreted());
      out.why_not_stored = std::max(out.why_not_stored, kernel->why_not_stored());
    }
  return out;
}

void KernelCache::drop_unused() {
  for (auto& [key, list] : kernels_)
    count_ -= std::erase_if(list, [](const auto& known) { return known.use_count() == 1; });
  std::erase_if(kernels_, [](const auto& entry) { return entry.second.empty(); });
}
