// The best prices for a small piece: the dual of its linear relaxation, by the primal simplex method.
#pragma once

#include <vector>

#include "tessera/cover/search_model.h"

namespace tessera::cover {

/// Prices of the positions, in fine costs, close to the best: no more than rounding errors away if it ended
/// by itself, and further if `rounds` or the effort ended it; then tiles may cost less than their positions
/// pay. A round takes time in the square of the number of positions.
[[nodiscard]] std::vector<double> simplex_prices(const SearchModel& model, std::size_t rounds,
                                                 Effort& effort);

}  // namespace tessera::cover
