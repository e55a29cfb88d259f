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

}  // namespace tessera::plan
