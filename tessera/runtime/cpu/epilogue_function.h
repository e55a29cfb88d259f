// An activation that no primitive has, at the end of a product: the formula of its card, over blocks that are
// at hand.
#pragma once

#include "tessera/kernel/interpreter.h"
#include "tessera/op/card.h"

namespace tessera::runtime::cpu {

class EpilogueFunction {
 public:
  /// Null where the card has no formula that takes f32 and at most two numbers more. One object for a card, as
  /// long as the program lives. Thread-safe.
  [[nodiscard]] static const EpilogueFunction* of(const op::Card& card);

  explicit EpilogueFunction(kernel::Kernel kernel) : interpreter_(std::move(kernel)) {}

  /// Replaces each of `count` numbers. `more` are the operands behind the first. Throws std::bad_alloc.
  void apply(float* x, std::size_t count, std::span<const float> more) const;

 private:
  kernel::Interpreter interpreter_;
};

}  // namespace tessera::runtime::cpu
