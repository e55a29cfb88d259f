// What calls compute, in operations: what predictions of time go by. An addition of two elements is one, and
// so is a multiply-add of a product; a tanh is as many as it takes the time of (ir/scalar_opcodes.inc).
#pragma once

#include <map>

#include "tessera/op/call_info.h"

namespace tessera::op {

/// Counts what calls compute, and remembers what formulas take. Not thread-safe.
class ArithmeticCounter {
 public:
  /// Of one call, by its card's rule or formula; composites by their parts. 0 for what only moves elements,
  /// and where nothing is known. REQUIRES that all sizes are numbers.
  [[nodiscard]] double operations(const CallInfo& call, const ValueTypes& results);

 private:
  /// Of a formula, for each element of what it runs over, and of its result.
  struct Weight {
    double input = 0, result = 0;
  };
  [[nodiscard]] const Weight& weight_of(const CallInfo& call);
  [[nodiscard]] double in_parts(const CallInfo& call);

  std::map<const Card*, Weight> weights_;
};

}  // namespace tessera::op
