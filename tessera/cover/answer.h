// What a solver says of one piece, in terms that hold for every piece of the same shape.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "tessera/cover/cover.h"
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

/// The end of a budget. Without one it never passes.
class Deadline {
 public:
  Deadline() = default;
  explicit Deadline(std::optional<std::chrono::milliseconds> budget) {
    if (budget) end_ = std::chrono::steady_clock::now() + *budget;
  }
  /// Whether work of about that length still fits into the time that is left.
  [[nodiscard]] bool leaves(std::chrono::nanoseconds time) const {
    return !end_ || std::chrono::steady_clock::now() + time < *end_;
  }
  [[nodiscard]] bool passed() const { return end_ && std::chrono::steady_clock::now() >= *end_; }

 private:
  std::optional<std::chrono::steady_clock::time_point> end_;
};

}  // namespace tessera::cover
