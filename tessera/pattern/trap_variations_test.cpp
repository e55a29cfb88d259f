// Further inputs for the rows of TRAPS.md, section T, with answers found by hand.
#include <gtest/gtest.h>

#include <set>

#include "tessera/base/text.h"
#include "tessera/pattern/match_listing.h"

using namespace tessera;
using namespace tessera::pattern;

namespace {

using Lines = std::vector<std::string>;

/// A library in which each pattern is a chain of ops that are named by one letter; its name is the chain.
std::vector<Pattern> chains(std::initializer_list<const char*> names) {
  std::vector<Pattern> out;
  for (const char* name : names) {
    std::string text;
    for (const char* op = name; *op != '\0'; ++op)
      text += cat(text.empty() ? "" : "->", op - name, ":", std::string(1, *op));
    out.push_back(named(name, text));
  }
  return out;
}

TEST(TilerVariations, Trap_T1_TheLargestTileIsNotAlwaysPartOfTheBest) {
  const Graph graph = graph_from("1:a->2:b->3:c->4:d->5:e->6:f");
  EXPECT_EQ(tiles_of(graph, tiling_of(graph, chains({"bcde", "a", "f", "abc", "def"}), by_coverage)),
            (Lines{"abc: 1 2 3", "def: 4 5 6"}));
  // More nodes go before fewer tiles.
  EXPECT_EQ(tiles_of(graph, tiling_of(graph, chains({"bcde", "ab", "cd", "ef"}), by_coverage)),
            (Lines{"ab: 1 2", "cd: 3 4", "ef: 5 6"}));
}

TEST(TilerVariations, Trap_T1_SeveralTilesMayCostLessThanOne) {
  const Graph graph = graph_from("1:a->2:b->3:c");
  const std::vector<Pattern> library = {named("abc", "1:a->2:b->3:c @cost=4"),
                                        named("ab", "1:a->2:b @cost=2"), named("c", "1:c @cost=1.5"),
                                        named("b", "1:b @cost=0.25")};
  const Tiling cheap = tiling_of(graph, library);
  EXPECT_EQ(tiles_of(graph, cheap), (Lines{"ab: 1 2", "c: 3"}));
  EXPECT_EQ(cheap.cost, 3.5);
  EXPECT_EQ(tiles_of(graph, tiling_of(graph, library, by_coverage)), Lines{"abc: 1 2 3"});
  // Leaving out a and c at 0.5 each, with b alone: 1.25.
  EXPECT_EQ(tiling_of(graph, library, {.uncovered_cost = 0.5}).cost, 1.25);
}

TEST(TilerVariations, Trap_T2_AMultisetOfThree) {
  const std::string pattern = R"({"nodes":[{"id":"a","op":"add","inputs":["x","x","y"]}]})";
  const auto graph = [](const char* inputs) {
    return cat(R"({"nodes":[{"id":"1","op":"add","inputs":[)", inputs, "]}]}");
  };
  EXPECT_EQ(matches(graph(R"("p","q","p")"), pattern), Lines{"a=1 x=p y=q"});
  EXPECT_EQ(matches(graph(R"("q","p","p")"), pattern), Lines{"a=1 x=p y=q"});
  EXPECT_EQ(matches(graph(R"("p","q","r")"), pattern), Lines{});
  EXPECT_EQ(matches(graph(R"("p","p","p")"), pattern), Lines{"a=1 x=p y=p"}) << "two names, one value";
}

TEST(TilerVariations, Trap_T3_ArityOfAnInnerNode) {
  const std::string pattern = R"({"nodes":[{"id":"n","op":"neg","inputs":["x"]},
      {"id":"a","op":"add","inputs":["n","y"]}]})";
  const auto graph = [](const char* inputs) {
    return cat(R"({"nodes":[{"id":"1","op":"neg","inputs":["p"]},{"id":"2","op":"add","inputs":[)", inputs,
               "]}]}");
  };
  EXPECT_EQ(matches(graph(R"("1","q","r")"), pattern), Lines{});
  EXPECT_EQ(matches(graph(R"("1")"), pattern), Lines{});
  EXPECT_EQ(matches(graph(R"("q","1")"), pattern), Lines{"n=1 a=2 x=p y=q"});
}

TEST(TilerVariations, Trap_T4_EqualInputsFarApart) {
  const std::string centred = R"({"nodes":[{"id":"m","op":"mean","inputs":["x"]},
      {"id":"s","op":"sub","inputs":["x","m"]}],"outputs":["s"]})";
  const auto graph = [](const char* from) {
    return cat(R"({"nodes":[{"id":"0","op":"exp","inputs":["a"]},{"id":"1","op":"mean","inputs":["0"]},
        {"id":"2","op":"sub","inputs":[")",
               from, R"(","1"]}]})");
  };
  EXPECT_EQ(matches(graph("0"), centred), Lines{"m=1 s=2 x=0"}) << "the value of a node outside the tile";
  EXPECT_EQ(matches(graph("a"), centred), Lines{});
}

TEST(TilerVariations, Trap_T5_TheTransposeStandsInItsSlot) {
  const std::string gram = R"({"nodes":[{"id":"t","op":"transpose","inputs":["x"]},
      {"id":"m","op":"matmul","inputs":["x","t"]}],"outputs":["m"]})";
  const auto graph = [](const char* inputs) {
    return cat(R"({"nodes":[{"id":"1","op":"transpose","inputs":["a"]},{"id":"2","op":"matmul","inputs":[)",
               inputs, "]}]}");
  };
  EXPECT_EQ(matches(graph(R"("1","a")"), gram), Lines{});
  EXPECT_EQ(matches(graph(R"("a","1")"), gram), Lines{"t=1 m=2 x=a"});
  EXPECT_EQ(matches(graph(R"("1","1")"), gram), Lines{});
}

TEST(TilerVariations, Trap_T6_ALongWayRoundIsNotConvexEither) {
  const Graph graph = graph_from("1:mm->2:a->3:b->4:c->5:add; 1->5");
  EXPECT_EQ(matches(graph, pattern_from("x:mm->y:add @out=x,y")), Lines{});
  EXPECT_EQ(matches(graph, pattern_from("x:a->y:b")), Lines{"x=2 y=3"});
  // What must run between two nodes, though no value flows, is a way round as well.
  const std::string ordered = R"({"nodes":[{"id":"1","op":"mm","inputs":["x","w"]},
      {"id":"2","op":"log","inputs":["z"],"after":["1"]},
      {"id":"3","op":"relu","inputs":["1"],"after":["2"]}],"outputs":["2","3"]})";
  EXPECT_EQ(matches(ordered, "a:mm->b:relu"), Lines{});
}

TEST(TilerVariations, Trap_T7_ACycleOfThreeTiles) {
  const Graph graph = graph_from("1:p->2:x; 3:q->4:y; 5:r->6:z; 1->4; 3->6; 5->2");
  const auto library = [](double p, double q, double r) {
    return std::vector<Pattern>{named("px", cat("1:p->2:x @out=1,2 @cost=", p)),
                                named("qy", cat("1:q->2:y @out=1,2 @cost=", q)),
                                named("rz", cat("1:r->2:z @out=1,2 @cost=", r))};
  };
  const Tiling tiling = tiling_of(graph, library(1, 1, 1), by_coverage);
  EXPECT_EQ(tiling.tiles.size(), 2U) << "any two can be scheduled, not all three";
  EXPECT_EQ(tiling.uncovered.size(), 2U);
  EXPECT_TRUE(tiling.optimal);
  const Tiling cheapest = tiling_of(graph, library(1, 3, 2), {.uncovered_cost = 10});
  EXPECT_EQ(cheapest.cost, 1 + 2 + 2 * 10) << "the dearest of the three stays out";
}

TEST(TilerVariations, Trap_T8_OneOfSeveralResultsEscapes) {
  const auto graph = [](const char* outputs) {
    return cat(R"({"nodes":[{"id":"1","op":"split","inputs":["x"],"results":[{},{}]},
        {"id":"2","op":"relu","inputs":["1:0"]},{"id":"3","op":"neg","inputs":["1:1"]}],"outputs":[)",
               outputs, "]}");
  };
  const std::string pattern = R"({"nodes":[{"id":"s","op":"split"},{"id":"r","op":"relu","inputs":["s:0"]},
      {"id":"n","op":"neg","inputs":["s:1"]}],"outputs":["r","n"]})";
  EXPECT_EQ(matches(graph(R"("2","3")"), pattern), Lines{"s=1 r=2 n=3"});
  EXPECT_EQ(matches(graph(R"("2","3","1:1")"), pattern), Lines{});
}

TEST(TilerVariations, Trap_T10_CopiesOfTwoKindsWovenIntoEachOther) {
  // a-b-c and a-b in turn; all first nodes stand before all second ones.
  constexpr std::uint32_t pairs = 200;
  std::string text;
  for (std::uint32_t i = 0; i < 2 * pairs; ++i) text += cat("a", i, ":a;");
  for (std::uint32_t i = 0; i < 2 * pairs; ++i) text += cat("a", i, "->b", i, ":b;");
  for (std::uint32_t i = 0; i < 2 * pairs; i += 2) text += cat("b", i, "->c", i, ":c;");
  const Graph graph = graph_from(text);
  const Tiling tiling = tiling_of(graph, chains({"ab", "bc", "a"}), by_coverage);
  EXPECT_EQ(tiling.tiles.size(), 3 * pairs) << "a and bc, or ab alone";
  EXPECT_TRUE(tiling.uncovered.empty());
  EXPECT_TRUE(tiling.optimal);
  std::set<std::uint32_t> solved;
  for (const cover::Subproblem& part : tiling.subproblems) solved.insert(part.same_as);
  EXPECT_LE(solved.size(), 2U);
  std::vector<bool> has_run(graph.node_count(), false);
  for (const Tile& tile : tiling.tiles) {
    for (NodeId node : tile.nodes) has_run[node] = true;
    for (NodeId node : tile.nodes)
      for (NodeId before : graph.predecessors(node)) EXPECT_TRUE(has_run[before]) << graph.id(node);
  }
}

TEST(TilerVariations, Trap_T12_ALadderOfManyRungs) {
  // Two chains side by side, joined at every rung; the rung stands in the first slot of the second chain.
  constexpr std::uint32_t rungs = 20'000;
  const std::vector<Pattern> library = {named("rung", "1:a->2:b @out=1,2"),
                                        named("rail", "1:a->2:a @out=1,2"), named("a", "1:a"),
                                        named("b", "1:b")};
  std::string text = "l0:a->r0:b;";
  for (std::uint32_t i = 1; i < rungs; ++i)
    text += cat("l", i - 1, "->l", i, ":a->r", i, ":b; r", i - 1, "->r", i, ";");
  const Tiling tiling = tiling_of(graph_from(text), library);
  EXPECT_EQ(tiling.tiles.size(), rungs);
  EXPECT_TRUE(tiling.optimal);
}

TEST(TilerVariations, Trap_T15_AnExternalNextToAnInnerValueOfEqualOps) {
  // y may be the other neg, which is outside, but not the one inside.
  const std::string pattern = R"({"nodes":[{"id":"n","op":"neg","inputs":["x"]},
      {"id":"a","op":"add","inputs":["n","y"]}],"outputs":["n","a"]})";
  const std::string graph = R"({"nodes":[{"id":"1","op":"neg","inputs":["p"]},
      {"id":"2","op":"neg","inputs":["q"]},{"id":"3","op":"add","inputs":["1","2"]}]})";
  EXPECT_EQ(matches(graph, pattern), (Lines{"n=1 a=3 x=p y=2", "n=2 a=3 x=q y=1"}));
}

}  // namespace
