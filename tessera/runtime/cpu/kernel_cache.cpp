#include "tessera/runtime/cpu/kernel_cache.h"

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

void KernelCache::drop_unused() {
  for (auto& [key, list] : kernels_)
    count_ -= std::erase_if(list, [](const auto& known) { return known.use_count() == 1; });
  std::erase_if(kernels_, [](const auto& entry) { return entry.second.empty(); });
}
