// A lower bound from prices: what each position pays, so that no tile costs less than its positions pay.
//
// With such prices every tiling costs at least their sum, and a tile's cost above what its positions pay, its
// excess, is how much a tiling with it costs more than that. The best prices solve the dual of the linear
// relaxation without the constraint on cycles. We come close to them by subgradient steps, in whole numbers
// so that the result is the same everywhere.
#pragma once

#include <vector>

#include "tessera/cover/search_model.h"

namespace tessera::cover {

struct DualBound {
  Cost sum = 0;              ///< of the prices, fine: no tiling costs less
  std::vector<Cost> excess;  ///< by tile, fine, never negative
};

/// `known_cost` is the fine cost of some tiling. The result is valid, but weaker, if the effort is over
/// before.
[[nodiscard]] DualBound find_prices(const SearchModel& model, Cost known_cost, Effort& effort);

}  // namespace tessera::cover
