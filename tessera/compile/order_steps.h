// Puts the steps of a plan into an order that needs less memory: of the steps that can run, the one that
// gives back the most, or takes the least, goes first.
#pragma once

#include "tessera/plan/plan.h"

namespace tessera::compiler {

/// Returns whether the order changed. It does only if the most live bytes become fewer; symbols count as
/// `usual_size`. Steps keep all that they wait for before them, so every value stays what it is.
bool order_steps(plan::Plan& plan, std::int64_t usual_size = 64);

}  // namespace tessera::compiler
