#include "tessera/runtime/cpu/code_improver.h"

#include <new>

using namespace tessera::runtime::cpu;

void CodeImprover::ask_for(const std::shared_ptr<CompiledKernel>& kernel) {
  if (!kernel->can_improve()) return;
  // Opened here and not beside the program: if it ended meanwhile, it would destroy what LLVM has made so
  // far.
  if (!Llvm::open()) return;
  // Without a thread, or without memory for it, the code stays as it is.
  (void)queue_.push([this, asked = std::weak_ptr(kernel)]() noexcept {
    try {
      const auto held = asked.lock();
      if (held != nullptr && held->improve()) improvements_.fetch_add(1, std::memory_order_release);
    } catch (const std::bad_alloc&) {
    }
  });
}
