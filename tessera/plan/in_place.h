// Which results may take the memory of an input: an element-wise kernel reads each element of a value that
// nobody needs any more and writes another in its place.
#pragma once

#include <vector>

#include "tessera/plan/plan.h"

namespace tessera::plan {

/// By step. The input is computed by the plan, read by this step alone, no view, and of the size of the
/// result; the kernel reads it only at the point it writes, and nothing of it after the first write. So it
/// holds in whatever order a runtime runs the steps. Each input is taken once, each result has one at most.
[[nodiscard]] std::vector<std::vector<InPlace>> find_in_place(const Plan& plan);

/// Whether an output of the plan may be written where an input lies that nobody needs after, as what a loop
/// carries from one turn to the next: it is the input itself, or a kernel computes it that alone reads the
/// input, only at the point it writes, and takes the memory of no other.
[[nodiscard]] bool can_replace(const Plan& plan, ValueId input, ValueId output);

}  // namespace tessera::plan
