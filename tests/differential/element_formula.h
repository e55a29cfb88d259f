// The element formula of an op (op/formula.h) on intervals.
#pragma once

#include <vector>

#include "tessera/op/card.h"
#include "tests/differential/interval.h"

namespace tessera::differential {

/// A card's formula as devices compute it: one scalar operation after another, each rounded.
class ElementFormula {
 public:
  /// REQUIRES a pointwise body that takes floats or truth values, and operands of these dtypes.
  ElementFormula(const op::Card& card, const std::vector<op::Dtype>& operands);

  /// For operands that are floats or truth values.
  [[nodiscard]] Interval operator()(std::span<const Interval> operands, const Precision& precision);

 private:
  struct Step {
    ir::ScalarOpcode opcode;
    std::vector<std::size_t> operands;  ///< places of values
  };

  std::size_t arity_;
  std::vector<Interval> constants_;  ///< behind the operands
  std::vector<Step> steps_;          ///< behind the constants
  std::size_t result_ = 0;
  std::vector<Interval> values_;  ///< of one element, in the order of places
};

}  // namespace tessera::differential
