// Exact dynamic programming along a piece, linear in its length for a bounded width.
//
// The walk takes the steps of a piece one after another. At each, a state says which slots ahead are already
// covered and which hinges are open; for each state only the cheapest way to reach it is kept. All states
// after a step, with costs relative to the cheapest, are a layer. Layers are interned, and the outcome of
// taking a kind of step from a layer is remembered: where a graph repeats, layers soon repeat, and from then
// on a step costs one look-up. This also makes repeated blocks cheap when tiles reach across their borders.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "tessera/cover/answer.h"
#include "tessera/cover/steps.h"

namespace tessera::cover {

/// REQUIRES the StepTable outlives it.
class Frontier {
 public:
  Frontier(const StepTable& table, std::uint32_t layer_limit);
  Frontier(Frontier&&) noexcept;
  ~Frontier();

  /// The best answer, or nothing if a layer grew beyond the limit, the piece is too wide, or the effort was
  /// over.
  [[nodiscard]] std::optional<Answer> solve(const StepList& steps, Effort& effort);

 private:
  struct Walks;
  std::unique_ptr<Walks> walks_;  ///< one for each width
};

}  // namespace tessera::cover
