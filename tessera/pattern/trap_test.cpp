// The rows of TRAPS.md, section T, from the text of a graph and a library to the tiling.
#include <gtest/gtest.h>

#include "tessera/base/text.h"
#include "tessera/pattern/library.h"
#include "tessera/pattern/match_listing.h"
#include "tests/support/growth.h"

using namespace tessera;
using namespace tessera::pattern;

namespace {

using Lines = std::vector<std::string>;

TEST(Tiler, Trap_T1_FullCoverageIsNoReasonToStop) {
  const Graph graph = graph_from("1:a->2:b->3:c->4:d");
  const std::vector<Pattern> library = {named("a", "1:a"), named("ab", "1:a->2:b"),
                                        named("bcd", "1:b->2:c->3:d"), named("c", "1:c"), named("d", "1:d")};
  for (const Objective objective : {Objective::cost, Objective::coverage}) {
    const Tiling tiling = tiling_of(graph, library, {.objective = objective});
    EXPECT_EQ(tiles_of(graph, tiling), (Lines{"a: 1", "bcd: 2 3 4"}));
    EXPECT_TRUE(tiling.optimal);
    EXPECT_EQ(tiling.candidates, 5U);
  }
}

TEST(Tiler, Trap_T2_CommutativeInputsAreAMultiset) {
  const std::string twice = R"({"nodes":[{"id":"a","op":"add","inputs":["x","x"]}]})";
  EXPECT_EQ(matches(R"({"nodes":[{"id":"1","op":"add","inputs":["p","q"]}]})", twice), Lines{});
  EXPECT_EQ(matches(R"({"nodes":[{"id":"1","op":"add","inputs":["p","p"]}]})", twice), Lines{"a=1 x=p"});
  // Also where the inputs are nodes.
  const std::string pair =
      R"({"nodes":[{"id":"m","op":"neg","inputs":["x"]},{"id":"a","op":"add","inputs":["m","m"]}]})";
  const std::string other = R"({"nodes":[{"id":"1","op":"neg","inputs":["p"]},
      {"id":"2","op":"add","inputs":["1","q"]}]})";
  const std::string same = R"({"nodes":[{"id":"1","op":"neg","inputs":["p"]},
      {"id":"2","op":"add","inputs":["1","1"]}]})";
  EXPECT_EQ(matches(other, pair), Lines{});
  EXPECT_EQ(matches(same, pair), Lines{"m=1 a=2 x=p"});
}

TEST(Tiler, Trap_T3_ArityCounts) {
  const std::string three = R"({"nodes":[{"id":"1","op":"add","inputs":["p","q","r"]}]})";
  EXPECT_EQ(matches(three, R"({"nodes":[{"id":"a","op":"add","inputs":["x","y"]}]})"), Lines{});
  EXPECT_EQ(matches(three, R"({"nodes":[{"id":"a","op":"add","inputs":["x","y","z"]}]})").size(), 1U);
  EXPECT_EQ(matches(three, "a:add"), Lines{"a=1"}) << "what is not drawn is open";
  EXPECT_EQ(matches(three, R"({"nodes":[{"id":"a","op":"add","inputs":[]}]})"), Lines{});
}

TEST(Tiler, Trap_T4_EqualExternalInputsStayEqual) {
  const std::string silu = R"({"nodes":[{"id":"s","op":"sigmoid","inputs":["x"]},
      {"id":"m","op":"mul","inputs":["x","s"]}],"outputs":["m"]})";
  const auto graph = [](const char* factor) {
    return cat(R"({"nodes":[{"id":"1","op":"sigmoid","inputs":["b"]},{"id":"2","op":"mul","inputs":[")",
               factor, R"(","1"]}]})");
  };
  EXPECT_EQ(matches(graph("a"), silu), Lines{});
  EXPECT_EQ(matches(graph("b"), silu), Lines{"s=1 m=2 x=b"});
}

TEST(Tiler, Trap_T5_SlotsCountWhenTheOperandIsExternal) {
  const std::string pattern = R"({"nodes":[{"id":"r","op":"relu","inputs":["x"]},
      {"id":"s","op":"sub","inputs":["p","r"]}]})";
  const auto graph = [](const char* inputs) {
    return cat(R"({"nodes":[{"id":"1","op":"relu","inputs":["x"]},{"id":"2","op":"sub","inputs":[)", inputs,
               "]}]}");
  };
  EXPECT_EQ(matches(graph(R"("1","p")"), pattern), Lines{});
  EXPECT_EQ(matches(graph(R"("p","1")"), pattern), Lines{"r=1 s=2 x=x p=p"});
  // The same with externals alone: sub(p, p) may not be found in sub(p, q).
  EXPECT_EQ(matches(R"({"nodes":[{"id":"1","op":"sub","inputs":["p","q"]}]})",
                    R"({"nodes":[{"id":"s","op":"sub","inputs":["x","x"]}]})"),
            Lines{});
}

TEST(Tiler, Trap_T6_ATileIsConvex) {
  const Graph graph = graph_from("1:mm->2:relu->3:add; 1->3");
  EXPECT_EQ(matches(graph, pattern_from("a:mm->b:add @out=a,b")), Lines{});
  EXPECT_EQ(matches(graph, pattern_from("a:mm->c:relu->b:add; a->b @out=a,b")).size(), 1U);
}

TEST(Tiler, Trap_T7_TwoConvexTilesMayFormACycle) {
  const Graph graph = graph_from("1:p->3:add; 2:q->4:mul; 1->4; 2->3");
  const std::vector<Pattern> library = {named("p_add", "1:p->2:add @out=1,2"),
                                        named("q_mul", "1:q->2:mul @out=1,2")};
  const Tiling tiling = tiling_of(graph, library, by_coverage);
  EXPECT_EQ(tiling.candidates, 2U) << "each alone is convex";
  EXPECT_EQ(tiling.tiles.size(), 1U);
  EXPECT_EQ(tiling.uncovered.size(), 2U);
  EXPECT_TRUE(tiling.optimal);
}

TEST(Tiler, Trap_T8_AGraphOutputEscapes) {
  EXPECT_EQ(matches("1:mm->2:relu @out=1,2", "a:mm->b:relu @out=b"), Lines{});
  EXPECT_EQ(matches("1:mm->2:relu @out=1,2", "a:mm->b:relu @out=a,b"), Lines{"a=1 b=2"});
  EXPECT_EQ(matches("1:mm->2:relu", "a:mm->b:relu"), Lines{"a=1 b=2"});
}

TEST(Tiler, Trap_T9_MappingsWithDifferentBoundariesAreBothKept) {
  // x + y, and y once more: which operand is x decides what the kernel computes.
  const std::string pattern = R"({"nodes":[{"id":"a","op":"add","inputs":["x","y"]},
      {"id":"d","op":"div","inputs":["a","k"]}]})";
  const std::string graph = R"({"nodes":[{"id":"1","op":"add","inputs":["p","q"]},
      {"id":"2","op":"div","inputs":["1","r"]}]})";
  EXPECT_EQ(matches(graph, pattern).size(), 1U) << "x and y are exchangeable: one mapping";
  const std::string fixed = R"({"nodes":[{"id":"a","op":"add","inputs":["x","y"]},
      {"id":"d","op":"div","inputs":["a","x"]}]})";
  EXPECT_EQ(matches(graph, fixed), Lines{});
  const std::string scaled =
      R"({"nodes":[{"id":"n","op":"neg","inputs":["x"]},{"id":"m","op":"mul","inputs":["n","y"]},
      {"id":"a","op":"add","inputs":["m","z"]}]})";
  const std::string graph2 =
      R"({"nodes":[{"id":"1","op":"neg","inputs":["p"]},{"id":"2","op":"mul","inputs":["1","q"]},
      {"id":"3","op":"add","inputs":["2","q"]}]})";
  EXPECT_EQ(matches(graph2, scaled), Lines{"n=1 m=2 a=3 x=p y=q z=q"}) << "two names may bind one value";
  // add(x, y) followed by a use of y: both ways to name the operands are matches with other boundaries.
  const std::string two =
      R"({"nodes":[{"id":"a","op":"add","inputs":["x","y"]},{"id":"b","op":"sub","inputs":["y","a"]},
      {"id":"c","op":"sub","inputs":["x","b"]}],"outputs":["c"]})";
  const std::string both =
      R"({"nodes":[{"id":"1","op":"add","inputs":["p","p"]},{"id":"2","op":"sub","inputs":["p","1"]},
      {"id":"3","op":"sub","inputs":["p","2"]}]})";
  EXPECT_EQ(matches(both, two), Lines{"a=1 b=2 c=3 x=p y=p"});
}

TEST(Tiler, Trap_T9_OpenChoicesOfACommutativeOpAreAllListed) {
  // Which operand is the constant-like x is decided by nothing: gate(x, y) = mul(x, y) with one dtype each.
  const Graph graph = graph_from(R"({"nodes":[{"id":"1","op":"mul","inputs":["p","q"]}],
      "externals":{"p":{"dtype":"f32"},"q":{"dtype":"f32"}}})");
  const Pattern pattern = pattern_from(R"({"nodes":[{"id":"m","op":"mul","inputs":["x","y"]}],
      "externals":{"x":{"dtype":"f32"},"y":{"dtype":["f32","f16"]}}})");
  EXPECT_EQ(matches(graph, pattern), (Lines{"m=1 x=p y=q", "m=1 x=q y=p"}));
}

TEST(Tiler, Trap_T10_DisjointCopiesAreSolvedOnce) {
  constexpr std::uint32_t copies = 1000;
  std::string text;
  for (std::uint32_t i = 0; i < copies; ++i) text += cat(3 * i, ":a->", 3 * i + 1, ":b->", 3 * i + 2, ":c;");
  const Graph graph = graph_from(text);
  const Tiling tiling =
      tiling_of(graph, {named("ab", "1:a->2:b"), named("bc", "1:b->2:c"), named("a", "1:a")}, by_coverage);
  EXPECT_EQ(tiling.uncovered.size(), 0U);
  EXPECT_EQ(tiling.tiles.size(), 2 * copies);
  EXPECT_EQ(tiling.candidates, 3 * copies);
  std::size_t solved = 0;
  for (std::size_t i = 0; i < tiling.subproblems.size(); ++i)
    solved += tiling.subproblems[i].same_as == i ? 1 : 0;
  EXPECT_EQ(tiling.subproblems.size(), copies);
  EXPECT_EQ(solved, 1U);
}

/// Eight producers into one op. `wrong` of them lead elsewhere.
std::string fan_graph(std::uint32_t producers, std::string_view into) {
  std::string text;
  for (std::uint32_t i = 0; i < producers; ++i)
    text += cat("s", i, ":src->n", i, ":neg->", i == 0 ? "t:" : "t", i == 0 ? into : "", ";");
  return text;
}

TEST(Tiler, Trap_T11_EdgesAreCheckedAsSoonAsBothEndsAreMapped) {
  for (const char* op : {"concat", "add"}) {
    const auto match_fan = [&](std::uint32_t producers) {
      const Graph graph = graph_from(fan_graph(producers, op));
      std::string pattern;
      for (std::uint32_t i = 0; i < producers; ++i)
        pattern += cat("n", i, ":neg->", i == 0 ? "t:" : "t", i == 0 ? op : "", ";");
      EXPECT_EQ(matches(graph, pattern_from(pattern)).size(), 1U) << op;
      // One producer too many in the pattern, one too few in the graph: nothing, as fast.
      EXPECT_EQ(matches(graph_from(fan_graph(producers - 1, op)), pattern_from(pattern)), Lines{}) << op;
    };
    // Eight producers mean 8^8 maps, and four mean 4^4: 65,536 times as many.
    EXPECT_LT(fixture::growth(4U, 8U, match_fan), 1000) << op;
  }
}

TEST(Tiler, Trap_T12_DepthDoesNotMatter) {
  constexpr std::uint32_t length = 100'000;
  std::string text = "0:a";
  for (std::uint32_t i = 1; i < length; ++i) text += cat("->", i, i % 2 == 0 ? ":a" : ":b");
  const Graph graph = graph_from(text);
  const Tiling tiling =
      tiling_of(graph, {named("ab", "1:a->2:b"), named("ba", "1:b->2:a"), named("a", "1:a")});
  EXPECT_EQ(tiling.tiles.size(), length / 2);
  EXPECT_TRUE(tiling.optimal);
  EXPECT_TRUE(tiling.uncovered.empty());
}

TEST(Tiler, Trap_T12_AChainPatternOfAnyLength) {
  constexpr std::uint32_t length = 3'000;
  std::string text = "0:a";
  for (std::uint32_t i = 1; i < length; ++i) text += cat("->", i, i % 2 == 0 ? ":a" : ":b");
  const Tiling tiling =
      tiling_of(graph_from(text), {named("all", "1:a->2:a|b+ @cost=3")}, {.uncovered_cost = 1});
  EXPECT_EQ(tiling.cost, 3);
  EXPECT_EQ(tiling.tiles.size(), 1U);
  ASSERT_EQ(tiling.gaps.size(), 1U) << "the shorter ones are millions";
  EXPECT_EQ(tiling.gaps[0], "pattern \"all\": some chains of more than 51 ops");
}

TEST(Tiler, Trap_T13_TheSameTilingEveryTime) {
  // Many tilings are equally good; the one that is chosen must not change.
  const std::string text = "1:a->2:a->3:a->4:a->5:a; 1->6:a->5; 2->7:a";
  const std::vector<Pattern> library = {named("x", "1:a->2:a"), named("y", "1:a->2:a"), named("z", "1:a")};
  Lines first;
  for (int i = 0; i < 5; ++i) {
    const Graph graph = graph_from(text);
    Lines tiles = tiles_of(graph, tiling_of(graph, library));
    if (i == 0) first = tiles;
    EXPECT_EQ(tiles, first);
  }
  EXPECT_EQ(first.size(), 6U);
}

TEST(Tiler, Trap_T14_TheSeedsExamples) {
  const std::vector<Pattern> library = {named("mm", "1:mm"), named("relu", "1:relu"),
                                        named("mm_relu", "1:mm->2:relu")};
  const Graph graph = graph_from("1:mm->2:relu->3:mm->4:relu");
  const Tiling tiling = tiling_of(graph, library, by_coverage);
  EXPECT_EQ(tiles_of(graph, tiling), (Lines{"mm_relu: 1 2", "mm_relu: 3 4"}));
  EXPECT_EQ(tiling.candidates, 6U);

  // "Position matching": any order for commutative ops, exact slots for others.
  const std::string sum = "a:exp->c:add; b:log->c";
  EXPECT_EQ(matches("2:log->3:add; 1:exp->3", sum).size(), 1U);
  EXPECT_EQ(matches("2:log->3:matmul; 1:exp->3", "a:exp->c:matmul; b:log->c"), Lines{});

  // "Output constraint": mm feeds an add outside the tile.
  const Graph escapes = graph_from("1:mm->2:relu->3:add; 1->3");
  EXPECT_EQ(matches(escapes, pattern_from("a:mm->b:relu")), Lines{});
  EXPECT_EQ(matches(escapes, pattern_from("a:mm->b:relu @out=a,b")), Lines{"a=1 b=2"});

  // "Canonicalization": every spelling is the same op.
  EXPECT_EQ(matches("1:torch.add->2:nn.ReLU", "a:operator.add->b:F.relu").size(), 1U);
}

TEST(Tiler, Trap_T15_AnExternalNeverBindsAValueFromInside) {
  const std::string pattern = R"({"nodes":[{"id":"n","op":"neg","inputs":["x"]},
      {"id":"s","op":"sub","inputs":["n","y"]}],"outputs":["n","s"]})";
  const auto graph = [](const char* second) {
    return cat(R"({"nodes":[{"id":"1","op":"neg","inputs":["p"]},{"id":"2","op":"sub","inputs":["1",")",
               second, R"("]}]})");
  };
  EXPECT_EQ(matches(graph("1"), pattern), Lines{});
  EXPECT_EQ(matches(graph("p"), pattern), Lines{"n=1 s=2 x=p y=p"});
  // A commutative op with the inner value in both places.
  const std::string sum = R"({"nodes":[{"id":"n","op":"neg","inputs":["x"]},
      {"id":"a","op":"add","inputs":["n","y"]}],"outputs":["n","a"]})";
  EXPECT_EQ(
      matches(R"({"nodes":[{"id":"1","op":"neg","inputs":["p"]},{"id":"2","op":"add","inputs":["1","1"]}]})",
              sum),
      Lines{});
}

}  // namespace
