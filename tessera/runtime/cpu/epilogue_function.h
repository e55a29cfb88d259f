// An activation that no primitive has, at the end of a product: the formula of its card, as a kernel over what
// is at hand.
#pragma once

#include "tessera/op/card.h"
#include "tessera/runtime/cpu/compiled_kernel.h"

namespace tessera::runtime::cpu {

/// Thread-safe.
class EpilogueFunction {
 public:
  /// Whether the card has a formula that takes f32 and at most two numbers more.
  [[nodiscard]] static bool exists(const op::Card& card);

  /// Makes its code. REQUIRES exists(card).
  EpilogueFunction(const op::Card& card, const KernelOptions& options);

  /// Replaces each of `count` numbers. `more` are the operands behind the first. Throws std::bad_alloc.
  void apply(float* x, std::size_t count, std::span<const float> more);

 private:
  CompiledKernel kernel_;
};

}  // namespace tessera::runtime::cpu
