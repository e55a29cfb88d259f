#include "tessera/runtime/cpu/cpu_device.h"

#include <algorithm>

#include "tessera/op/reference.h"
#include "tessera/runtime/cpu/cpu_executable.h"

using namespace tessera;
using namespace tessera::runtime;
using namespace tessera::runtime::cpu;

CpuDevice::CpuDevice(CpuOptions options) : options_(std::move(options)), threads_(options_.threads) {}

/// Op by op is for what is not hot: nothing is compiled for it.
Result<void> CpuDevice::run(const op::CallInfo& call, std::span<const op::Array> inputs,
                            std::span<const op::Array> results) {
  return op::run_reference(call, inputs, results);
}

Result<std::unique_ptr<Executable>> CpuDevice::load(plan::PlanRef plan,
                                                    const std::shared_ptr<MemoryPool>& pool) {
  return std::unique_ptr<Executable>(
      std::make_unique<CpuExecutable>(shared_from_this(), std::move(plan), pool));
}

std::shared_ptr<CompiledKernel> CpuDevice::compiled(const kernel::Kernel& kernel) {
  const Hash128 hash = kernel::hash(kernel);
  const std::lock_guard lock(mutex_);
  const auto [first, last] = kernels_.equal_range(hash);
  const auto same = std::find_if(
      first, last, [&](const auto& known) { return kernel::equal(known.second->kernel(), kernel); });
  if (same != last) return same->second;
  if (kernels_.size() >= max_kernels) kernels_.clear();  // plans keep theirs
  auto made = std::make_shared<CompiledKernel>(kernel, options_.kernels);
  kernels_.emplace(hash, made);
  return made;
}

std::size_t CpuDevice::kernel_count() const {
  const std::lock_guard lock(mutex_);
  return kernels_.size();
}
