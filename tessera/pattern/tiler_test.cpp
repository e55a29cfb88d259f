#include "tessera/pattern/tiler.h"

#include <gtest/gtest.h>

#include "tessera/base/text.h"
#include "tessera/pattern/match_listing.h"
#include "tests/support/growth.h"
#include "tests/support/repeats.h"

using namespace tessera;
using namespace tessera::pattern;

namespace {

using Lines = std::vector<std::string>;

TEST(Tile, TheCheapestTilingWinsNotTheLargestTile) {
  const Graph graph = graph_from("1:mm->2:relu");
  const Tiling tiling = tiling_of(graph, {pattern_from("1:mm->2:relu @cost=5"), pattern_from("1:mm @cost=2"),
                                          pattern_from("1:relu @cost=2")});
  EXPECT_EQ(tiling.cost, 4);
  EXPECT_EQ(tiling.bound, 4);
  EXPECT_EQ(tiling.tiles.size(), 2U);
}

TEST(Tile, UncoveredNodesCostWhatIsSaid) {
  const Graph graph = graph_from("1:mm->2:relu");
  const std::vector<Pattern> library{pattern_from("1:mm @cost=5")};
  EXPECT_EQ(tiling_of(graph, library, {.uncovered_cost = 1}).cost, 2) << "leaving both is cheaper";
  EXPECT_EQ(tiling_of(graph, library, {.uncovered_cost = 10}).cost, 15);
  const Tiling by_default = tiling_of(graph, library);
  EXPECT_EQ(by_default.uncovered, std::vector<NodeId>{1}) << "covering as much as possible comes first";
}

TEST(Tile, CoverageCountsNodesThenTiles) {
  const Graph graph = graph_from("1:mm->2:relu->3:mm");
  const Tiling tiling =
      tiling_of(graph, {pattern_from("1:mm @cost=1"), pattern_from("1:mm->2:relu @cost=100")},
                {.objective = Objective::coverage});
  EXPECT_EQ(tiles_of(graph, tiling), (Lines{"p: 1 2", "p: 3"}));
}

TEST(Tile, TilesComeInAnOrderInWhichTheyCanRun) {
  // Numbered against the order.
  const Graph graph =
      graph_from(R"({"nodes":[{"id":"c","op":"c","inputs":["b"]},{"id":"b","op":"b","inputs":["a"]},
      {"id":"a","op":"a","inputs":["x"]}]})");
  const Tiling tiling = tiling_of(graph, {pattern_from("1:a"), pattern_from("1:b->2:c")});
  EXPECT_EQ(tiles_of(graph, tiling), (Lines{"p: a", "p: c b"}));
}

TEST(Tile, ATileKnowsItsBoundary) {
  const Graph graph =
      graph_from(R"({"nodes":[{"id":"1","op":"neg","inputs":["x"]},{"id":"2","op":"sub","inputs":["1","y"]},
      {"id":"3","op":"exp","inputs":["2"]}],"outputs":["3","1"]})");
  const Tiling tiling = tiling_of(graph, {pattern_from("1:neg->2:sub @out=1,2"), pattern_from("1:exp")});
  ASSERT_EQ(tiling.tiles.size(), 2U);
  const Tile& tile = tiling.tiles[0];
  ASSERT_EQ(tile.inputs.size(), 2U);
  EXPECT_EQ(graph.value_name(tile.inputs[0]), "x");
  EXPECT_EQ(graph.value_name(tile.inputs[1]), "y");
  ASSERT_EQ(tile.outputs.size(), 2U);
  EXPECT_EQ(graph.value_name(tile.outputs[0]), "1");
  EXPECT_EQ(graph.value_name(tile.outputs[1]), "2");
}

TEST(Tile, EqualTilesOfTwoPatternsCompeteByCost) {
  const Graph graph = graph_from("1:mm->2:relu");
  std::vector<Pattern> library;
  for (const char* text :
       {"1:mm->2:relu @cost=3", "1:mm->2:relu @cost=2 @kernel=fast", "1:mm->2:relu @cost=4"})
    library.push_back(pattern_from(text));
  const Tiling tiling = tiling_of(graph, library);
  EXPECT_EQ(tiling.cost, 2);
  EXPECT_EQ(tiling.tiles[0].kernel(), "fast");
}

TEST(Tile, ALimitOnCandidatesIsReported) {
  Target target = target_of({pattern_from("1:a")});
  target.limits.candidates = 2;
  const Tiling tiling = value_or_throw(tile(graph_from("1:a->2:a->3:a"), target, {.uncovered_cost = 4}));
  EXPECT_EQ(tiling.candidates, 2U);
  EXPECT_EQ(tiling.gaps, Lines{"pattern \"p\": there are too many candidates"});
  EXPECT_EQ(tiling.cost, 6);
}

TEST(Tile, WithoutTimeTheAnswerIsValidAndClaimsNothing) {
  std::string text = "0:a";
  for (int i = 1; i < 20'000; ++i) text += cat("->", i, ":a");
  const Graph graph = graph_from(text);
  const Tiling tiling = tiling_of(graph, {pattern_from("1:a->2:a"), pattern_from("1:a")},
                                  {.budget = std::chrono::milliseconds(0), .uncovered_cost = 2});
  EXPECT_FALSE(tiling.optimal);
  EXPECT_EQ(tiling.bound, 0);
  EXPECT_EQ(tiling.gap, 1);
  EXPECT_FALSE(tiling.gaps.empty());
  std::size_t covered = 0;
  for (const Tile& tile : tiling.tiles) covered += tile.nodes.size();
  EXPECT_EQ(covered + tiling.uncovered.size(), graph.node_count());
}

/// `taken` of `all` equal operands of one addition: a binomial number of matches.
std::string sum_of(std::uint32_t all, std::uint32_t taken) {
  std::string nodes;
  std::string inputs;
  for (std::uint32_t i = 0; i < all; ++i) {
    if (i < taken) nodes += cat(R"({"id":"r)", i, R"(","op":"relu"},)");
    inputs += cat(i == 0 ? "" : ",", i < taken ? cat("\"r", i, "\"") : "null");
  }
  return cat(R"({"nodes":[)", nodes, R"({"id":"t","op":"add","inputs":[)", inputs, "]}]}");
}

TEST(Tile, ABudgetBoundsTheListing) {
  std::string text;
  for (int i = 0; i < 32; ++i) text += cat("r", i, ":relu->", i == 0 ? "t:add" : "t", ";");
  const Graph graph = graph_from(text);
  // All would take hours: without the bound the test does not end.
  const std::vector<Pattern> patterns{pattern_from(sum_of(32, 16)), pattern_from("1:relu")};
  EXPECT_FALSE(tiling_of(graph, patterns, {.budget = std::chrono::milliseconds(100)}).optimal);
  const Tiling tiling = tiling_of(graph, patterns, {.work = 100'000'000});
  EXPECT_FALSE(tiling.optimal);
  EXPECT_EQ(tiling.bound, 0);
  EXPECT_EQ(tiling.gap, 1);
  EXPECT_EQ(tiling.gaps, Lines{"pattern \"p\": the budget was used up"});
  EXPECT_LE(tiling.uncovered.size(), 1U) << "a pattern that takes its time leaves some to the others";
}

TEST(Tile, WithoutABudgetTheListingEndsToo) {
  if (fixture::is_sanitized) GTEST_SKIP() << "half a minute of steps that are all the same";
  std::string text;
  for (int i = 0; i < 12; ++i) text += cat("r", i, ":relu->", i == 0 ? "t:add" : "t", ";");
  // Twelve operands that are all told apart, but fit everywhere: 12! ways to cover the same nodes.
  std::string pattern;
  for (int i = 0; i < 12; ++i) pattern += cat("r", i, ":relu|z", i, "->", i == 0 ? "t:add" : "t", ";");
  const Tiling tiling = tiling_of(graph_from(text), {pattern_from(pattern)});
  EXPECT_EQ(tiling.candidates, 64U);
  EXPECT_EQ(tiling.gaps, Lines{"pattern \"p\": the search took too many steps"});
  EXPECT_EQ(tiling.cost, 1);
}

TEST(Tile, APatternThatFitsTooOftenLeavesRoomForOthers) {
  Target target = target_of({pattern_from("1:a->2:a"), pattern_from("1:a @cost=1")});
  target.limits.candidates = 16;
  std::string text = "0:a";
  for (int i = 1; i < 12; ++i) text += cat("->", i, ":a");
  const Tiling tiling = value_or_throw(tile(graph_from(text), target, {.uncovered_cost = 4}));
  EXPECT_EQ(tiling.candidates, 16U);
  EXPECT_EQ(tiling.gaps.size(), 2U);
}

TEST(Tile, AValueMayHaveVeryManyReaders) {
  const auto tile_readers = [](std::size_t readers) {
    std::string text = "p:p";
    for (std::size_t i = 0; i < readers; ++i) text += cat(";p->a", i, ":a->b", i, ":b");
    const Tiling tiling =
        tiling_of(graph_from(text), {pattern_from("1:p->2:a->3:b @out=1,3"), pattern_from("1:a->2:b")});
    EXPECT_EQ(tiling.candidates, 2 * readers);
    EXPECT_EQ(tiling.tiles.size(), readers);
  };
  EXPECT_LT(fixture::growth(1'000U, 8'000U, tile_readers), 24) << "quadratic would be 64";
}

TEST(Tile, AnEmptyGraphIsCovered) {
  const Tiling tiling = tiling_of(graph_from(R"({"nodes":[]})"), {pattern_from("1:a")});
  EXPECT_TRUE(tiling.optimal);
  EXPECT_EQ(tiling.cost, 0);
}

}  // namespace
