// Puts the steps of a plan into an order that needs less memory: of the steps that can run, the one that
// gives back the most, or takes the least, goes first.
#pragma once

#include "tessera/plan/plan.h"

namespace tessera::compiler {

/// Returns how many steps moved. They do only if the most live bytes become fewer; symbols count as 64. Steps
/// keep all that they wait for before them, so every value stays what it is.
std::size_t order_steps(plan::Plan& plan);

}  // namespace tessera::compiler
