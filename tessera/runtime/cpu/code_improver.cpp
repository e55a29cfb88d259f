#include "tessera/runtime/cpu/code_improver.h"

#include <new>

using namespace tessera::runtime::cpu;

namespace {

/// Kernels that may be gone when it is their turn: what waits keeps some of their memory.
constexpr std::size_t max_waiting = 4096;

}  // namespace

void CodeImprover::ask_for(const std::shared_ptr<CompiledKernel>& kernel) {
  if (!kernel->can_improve() || queue_.waiting() >= max_waiting) return;
  // Without memory for it, or without a thread, the code stays as it is.
  try {
    // Opened here and not beside the program: if it ended meanwhile, it would destroy what LLVM has made so
    // far.
    if (!Llvm::open()) return;
    (void)queue_.push([this, asked = std::weak_ptr(kernel)]() noexcept { improve(asked); });
  } catch (const std::bad_alloc&) {
  }
}

void CodeImprover::improve(const std::weak_ptr<CompiledKernel>& asked) noexcept {
  try {
    const auto kernel = asked.lock();
    if (kernel != nullptr && kernel->improve()) improvements_.fetch_add(1, std::memory_order_release);
  } catch (const std::bad_alloc&) {
  }
}
