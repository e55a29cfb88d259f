#include "tessera/cover/dual.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tessera/cover/hinge.h"
#include "tessera/cover/instances.h"
#include "tessera/cover/simplex.h"

using namespace tessera;
using namespace tessera::cover;

namespace {

/// The largest piece of a problem, ready for the bounded search.
SearchModel largest_piece(const Problem& problem) {
  Effort unlimited;
  Model model = *make_model(problem, unlimited);
  const auto labels = mark_hinges(model);
  const Pieces pieces = split(model, labels);
  return make_search_model(model, pieces, *std::ranges::max_element(pieces.pieces, {}, &Piece::size));
}

Problem triangle() {
  // Three nodes, every pair a tile of cost 1: half of each pair costs 1.5, two tiles are needed.
  return {.node_count = 3,
          .candidates = {{.nodes = {0, 1}}, {.nodes = {1, 2}}, {.nodes = {0, 2}}},
          .uncovered_cost = {1, 1, 1}};
}

TEST(Dual, FindsTheOptimumOfTheRelaxation) {
  const SearchModel model = largest_piece(triangle());
  Effort unlimited;
  const DualBound bound = find_prices(model, model.fine.of(3), unlimited);
  EXPECT_EQ(bound.sum, model.fine.of(3) / 2);
  EXPECT_EQ(model.fine.rounded_up(bound.sum), 2);
}

TEST(Dual, NoTileCostsLessThanItsPositionsPay) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const SearchModel model = largest_piece(random_problem(
        {.nodes = 60, .candidates = 150, .edge_percent = 10, .costs = CostKind::fraction}, seed));
    Effort unlimited;
    const DualBound bound = find_prices(model, model.fine.of(1) * 1'000'000, unlimited);
    Cost alone = 0;
    for (std::uint32_t i = 0; i < model.size; ++i) alone += model.tiles[i].cost;
    EXPECT_GE(std::ranges::min(bound.excess), 0);
    EXPECT_LE(bound.sum, alone);
    EXPECT_GE(bound.sum, 0);
  }
}

TEST(Dual, PricesMayBeNegativeWhenANodeIsHardToLeaveOut) {
  // Node 1 is in every tile; 0 and 2 must not both be covered with it. Best: one tile and one node uncovered.
  const Problem problem{.node_count = 3,
                        .edges = {{0, 1}, {1, 2}},
                        .candidates = {{.nodes = {0, 1}}, {.nodes = {1, 2}}, {.nodes = {1}}},
                        .uncovered_cost = {100, 100, 100}};
  const SearchModel model = largest_piece(problem);
  Effort unlimited;
  const DualBound bound = find_prices(model, model.fine.of(300), unlimited);
  EXPECT_EQ(model.fine.rounded_up(bound.sum), model.fine.rounded_up(model.tiles[0].cost + model.fine.of(1)));
}

TEST(Simplex, StopsAfterTheGivenRounds) {
  const SearchModel model = largest_piece(triangle());
  Effort unlimited;
  const std::vector<double> prices = simplex_prices(model, 0, unlimited);
  EXPECT_EQ(prices, std::vector<double>(3, static_cast<double>(model.fine.of(1))));
}

}  // namespace
