// A plan on the CPU: its kernels with everything prepared that does not change from launch to launch.
#pragma once

#include <vector>

#include "tessera/runtime/cpu/cpu_device.h"
#include "tessera/runtime/host_executable.h"

namespace tessera::runtime::cpu {

class CpuExecutable final : public HostExecutable {
 public:
  CpuExecutable(std::shared_ptr<CpuDevice> device, plan::PlanRef plan, std::shared_ptr<MemoryPool> pool);

 protected:
  [[nodiscard]] Result<void> run_work(std::size_t index, HostWork& work, bool moved) override;
  void sizes_changed() override;

 private:
  /// A step with what was prepared for it; a kernel stays as it is while no address changes.
  struct KernelRun {
    CompiledJob job;
    bool is_ready = false;
    std::vector<double> parameters;
    LibraryCallRef library;
    /// A kernel that sees an input in an order that its strides do not allow reads a copy.
    std::vector<op::HostTensor> copies;
    std::vector<op::Array> inputs;  ///< with the copies; empty if there are none
  };

  [[nodiscard]] Result<void> run_call(const HostWork& work);
  [[nodiscard]] Result<void> run_library(const LibraryForm& form, KernelRun& run, const HostWork& work);
  [[nodiscard]] Result<void> run_kernel(CompiledKernel& kernel, KernelRun& run, const HostWork& work,
                                        bool moved);
  [[nodiscard]] Result<void> prepare_kernel(CompiledKernel& kernel, KernelRun& run, const HostWork& work);

  std::shared_ptr<CpuDevice> device_;
  std::vector<std::shared_ptr<CompiledKernel>> kernels_;  ///< by step; null where there is none
  std::vector<std::optional<LibraryForm>> libraries_;     ///< by step
  std::vector<KernelRun> runs_;                           ///< by work
  std::vector<kernel::Scratch> scratch_;                  ///< by thread
};

}  // namespace tessera::runtime::cpu
