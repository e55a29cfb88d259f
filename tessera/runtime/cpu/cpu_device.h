// The CPU: fused kernels as machine code over one pool of threads.
#pragma once

#include <memory>

#include "tessera/runtime/cpu/kernel_cache.h"
#include "tessera/runtime/cpu/library_call.h"
#include "tessera/runtime/cpu/machine_costs.h"
#include "tessera/runtime/cpu/thread_pool.h"
#include "tessera/runtime/device.h"

namespace tessera::runtime::cpu {

struct CpuOptions {
  unsigned threads = 0;  ///< 0: TESSERA_THREADS, or as many as the machine has
  /// Without a store of their own, kernels use that of the user's cache (code_store.h).
  KernelOptions kernels = {};
  /// What the compiler may choose from, beside the libraries.
  pattern::Target target = {.name = "cpu"};
  /// What it reckons with; `target` may have others.
  MachineCosts costs = {};
};

class CpuDevice final : public Device, public std::enable_shared_from_this<CpuDevice> {
 public:
  explicit CpuDevice(CpuOptions options = {});

  [[nodiscard]] std::string_view name() const override { return "cpu"; }
  [[nodiscard]] Result<void> run(const op::CallInfo& call, std::span<const op::Array> inputs,
                                 std::span<const op::Array> results) override;
  [[nodiscard]] const pattern::Target& target() const override { return options_.target; }
  [[nodiscard]] Result<std::unique_ptr<Executable>> load(plan::PlanRef plan,
                                                         const std::shared_ptr<MemoryPool>& pool) override;

  [[nodiscard]] ThreadPool& threads() { return threads_; }
  /// The kernel in a form that runs; one for all plans that need it.
  [[nodiscard]] std::shared_ptr<CompiledKernel> compiled(const kernel::Kernel& kernel) {
    return kernels_.get(kernel);
  }
  [[nodiscard]] Libraries& libraries() { return libraries_; }
  [[nodiscard]] const MachineCosts& costs() const { return options_.costs; }
  /// Kernels that were made and are still known.
  [[nodiscard]] std::size_t kernel_count() const { return kernels_.size(); }

 private:
  [[nodiscard]] KernelOptions kernel_options() const;

  CpuOptions options_;
  ThreadPool threads_;
  CodeStore store_;
  KernelCache kernels_;
  Libraries libraries_;
};

}  // namespace tessera::runtime::cpu
