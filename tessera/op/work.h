// How much a call takes: what budgets and predictions of time go by.
#pragma once

#include "tessera/op/call_info.h"

namespace tessera::op {

/// The number of elements, as a number that does not overflow. REQUIRES that all sizes are numbers.
[[nodiscard]] double element_estimate(const Shape& shape);

/// The multiply-adds of a call, about: by the card's rule, or the elements of inputs and results. REQUIRES
/// that all sizes are numbers.
[[nodiscard]] double work_of(const CallInfo& call, const ValueTypes& results);

}  // namespace tessera::op
