#include "tessera/cover/hinge.h"

#include <gtest/gtest.h>

#include "tessera/cover/instances.h"
#include "tessera/cover/pieces.h"

using namespace tessera;
using namespace tessera::cover;

namespace {

/// The candidates that are marked as hinges.
std::vector<std::uint32_t> hinges(const Problem& problem) {
  Effort unlimited;
  Model model = *make_model(problem, unlimited);
  [[maybe_unused]] const auto labels = mark_hinges(model);
  std::vector<std::uint32_t> out;
  for (const Tile& tile : model.tiles)
    if (tile.is_hinge) out.push_back(tile.candidate);
  std::sort(out.begin(), out.end());
  return out;
}

Pieces pieces_of(const Problem& problem) {
  Effort unlimited;
  Model model = *make_model(problem, unlimited);
  const auto labels = mark_hinges(model);
  return split(model, labels);
}

TEST(Hinge, TilesOfARingAreHinges) {
  EXPECT_EQ(hinges(ring_problem(2)), (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(hinges(ring_problem(5)).size(), 5U);
}

TEST(Hinge, TilesOfAChainAreNone) { EXPECT_TRUE(hinges(chain_problem(50, 6)).empty()); }

TEST(Hinge, ATileThatIsEnteredAndLeftApartIsNoneWhereNoCycleIsPossible) {
  // {0, 1} has no edge inside, but nothing leads from it back to it.
  const Problem problem{.node_count = 4,
                        .edges = {{0, 2}, {1, 3}},
                        .candidates = {{.nodes = {0, 1}}, {.nodes = {2, 3}}},
                        .uncovered_cost = {1, 1, 1, 1}};
  EXPECT_TRUE(hinges(problem).empty());
}

TEST(Hinge, ATileThatIsNotConvexIsOne) {
  const Problem problem{.node_count = 3,
                        .edges = {{0, 1}, {1, 2}, {0, 2}},
                        .candidates = {{.nodes = {0, 2}}},
                        .uncovered_cost = {1, 1, 1}};
  EXPECT_EQ(hinges(problem), (std::vector<std::uint32_t>{0}));
}

TEST(Pieces, CyclesHoldComponentsTogether) {
  const Pieces pieces = pieces_of(ring_problem(4));
  ASSERT_EQ(pieces.pieces.size(), 1U);
  EXPECT_EQ(pieces.pieces[0].size, 8U);
  EXPECT_TRUE(pieces.pieces[0].has_hinges);
}

TEST(Pieces, AreCutWhereNoTileReachesAcross) {
  Problem problem = chain_problem(8, 1);
  for (std::uint32_t first : {0U, 1U, 4U, 5U})
    problem.candidates.push_back({.nodes = {first, first + 1}, .cost = 0.5});
  const Pieces pieces = pieces_of(problem);
  ASSERT_EQ(pieces.pieces.size(), 2U);
  EXPECT_EQ(pieces.pieces[0].size, 3U);
  EXPECT_EQ(pieces.pieces[1].size, 3U);
  EXPECT_EQ(pieces.piece_of[3], Pieces::alone);
  EXPECT_EQ(pieces.piece_of[7], Pieces::alone);
}

}  // namespace
