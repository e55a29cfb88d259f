// Makes better code for kernels that turn out to be hot, on a thread beside the program. Who runs them looks
// between two runs whether there is some. The program may end at any time.
#pragma once

#include <atomic>
#include <memory>

#include "tessera/base/job_queue.h"
#include "tessera/runtime/cpu/compiled_kernel.h"

namespace tessera::runtime::cpu {

/// Thread-safe.
class CodeImprover {
 public:
  /// Makes better code later, if the kernel still lives then and can have some. Takes 20 ms if all code came
  /// from the store so far: LLVM is opened.
  void ask_for(const std::shared_ptr<CompiledKernel>& kernel);
  /// Grows when a kernel has got better code.
  [[nodiscard]] std::uint64_t improvements() const { return improvements_.load(std::memory_order_acquire); }
  /// Until nothing is left to do.
  void wait() { queue_.wait(); }

 private:
  void improve(const std::weak_ptr<CompiledKernel>& asked) noexcept;

  std::atomic<std::uint64_t> improvements_ = 0;
  JobQueue queue_;  ///< last: its thread uses the above
};

}  // namespace tessera::runtime::cpu
