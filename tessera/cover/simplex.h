// The best prices for a small piece: the dual of its linear relaxation, by the primal simplex method.
#pragma once

#include <vector>

#include "tessera/cover/search_model.h"

namespace tessera::cover {

/// Prices of the positions, in fine costs, close to the best: no more than rounding errors away if it ended
/// by itself, and further if `rounds` ended it. They may be slightly above what the tiles allow. Takes time
/// and memory in the square of the number of positions in each round.
[[nodiscard]] std::vector<double> simplex_prices(const SearchModel& model, std::size_t rounds);

}  // namespace tessera::cover
