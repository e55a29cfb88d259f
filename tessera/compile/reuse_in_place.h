// Lets results take the memory of an input that dies with the step (plan/in_place.h says which may).
#pragma once

#include <cstddef>

#include "tessera/plan/plan.h"

namespace tessera::compiler {

/// Returns how many results take other memory than before.
std::size_t reuse_in_place(plan::Plan& plan);

}  // namespace tessera::compiler
