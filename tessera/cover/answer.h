// What a solver says of one piece, in terms that hold for every piece of the same shape.
#pragma once

#include <cstdint>
#include <vector>

#include "tessera/cover/cover.h"
#include "tessera/cover/effort.h"
#include "tessera/cover/fixed_cost.h"

namespace tessera::cover {

/// How the position at a local index of a piece is covered: 0 alone, k > 0 by the k-th tile that starts
/// there.
using Choice = std::uint32_t;
/// The position is covered by a tile that starts before it.
inline constexpr Choice covered_before = 0xffffffff;

struct Answer {
  std::vector<Choice> choices;  ///< by local index
  Cost cost = 0;
  Cost bound = 0;  ///< no valid tiling of the piece costs less
  Method method = Method::frontier;
  std::uint64_t states = 0;

  [[nodiscard]] bool is_optimal() const { return cost <= bound; }
};

}  // namespace tessera::cover
