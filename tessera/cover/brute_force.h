// The least cost by trying every tiling: an oracle that shares no code with the solver.
#pragma once

#include "tessera/cover/cover.h"

namespace tessera::cover {

/// REQUIRES at most 20 nodes and a valid problem. Exponential.
[[nodiscard]] double brute_force_cost(const Problem& problem);

/// Why `solution` is not a tiling of `problem` with the costs and the order it claims; empty if it is.
[[nodiscard]] std::string explain_invalid(const Problem& problem, const Solution& solution);

}  // namespace tessera::cover
