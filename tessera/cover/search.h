// Branch and bound over partial schedules, for pieces whose frontier is too wide.
//
// A tiling is acyclic exactly if its hinges can be placed one after another, each after everything that leads
// to it. The search builds such a schedule from the front. A state is the set of positions that are placed,
// and a stack of hinges that are chosen but wait for positions before them. The next position to cover is the
// lowest free one, or, if a hinge waits, the lowest free one that it waits for; every tile over it is tried
// that is free and does not wait for a hinge on the stack in turn, for that would close a cycle. So every
// acyclic tiling is met in exactly one order, and no other tiling at all. Tiles that are no hinges are placed
// at once.
//
// States with the same number of decided positions form a bucket; equal states are merged there, the cheapest
// way to reach them kept. A state is dropped when what it cost so far plus a lower bound on the rest (prices,
// see dual.h, raised by what the state itself rules out) cannot beat the best tiling known. That is a bound
// on the rest, not an optimum of it, so merging and bounding do not get in each other's way. A run keeps at
// most `beam` states of a bucket; if it dropped none it is a proof, otherwise the least bound among the
// dropped is a bound on the optimum, and a wider run follows.
#pragma once

#include <cstdint>
#include <memory>

#include "tessera/cover/answer.h"
#include "tessera/cover/model.h"
#include "tessera/cover/pieces.h"

namespace tessera::cover {

/// The search for one piece. Starts from a tiling that is known, and keeps the best one found.
class Search {
 public:
  /// Finds the prices, which already may raise the bound of `start`, a valid answer for the piece. REQUIRES
  /// model and pieces outlive it.
  Search(const Model& model, const Pieces& pieces, const Piece& piece, Answer start, Effort& effort);
  Search(Search&&) noexcept;
  Search& operator=(Search&&) noexcept;
  ~Search();

  /// One run with a wider beam than the last. False once the answer is proven, the limit on states is used
  /// up, or wider runs cannot tell more.
  bool widen(std::uint64_t state_limit, Effort& effort);
  [[nodiscard]] const Answer& answer() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tessera::cover
