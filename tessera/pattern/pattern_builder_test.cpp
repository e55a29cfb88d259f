#include "tessera/pattern/pattern_builder.h"

#include <gtest/gtest.h>

#include "tessera/pattern/match_listing.h"

using namespace tessera;
using namespace tessera::pattern;

namespace {

using Lines = std::vector<std::string>;

TEST(PatternBuilder, WritesPatternsWithTheOperatorsOfTensors) {
  PatternBuilder p("silu_gate");
  const auto x = p.input("x"), y = p.input("y");
  const auto gate = (x * p.op("sigmoid", {x}).as("s")).as("m");
  (gate * y - 1.0).as("out");
  const Pattern pattern = value_or_throw(p.cost(1.5).kernel("gate").build());
  EXPECT_EQ(pattern.name(), "silu_gate");
  EXPECT_EQ(pattern.kernel(), "gate");
  EXPECT_EQ(
      matches(
          graph_from(
              R"({"nodes":[{"id":"1","op":"sigmoid","inputs":["a"]},{"id":"2","op":"mul","inputs":["1","a"]},
      {"id":"3","op":"mul","inputs":["b","2"]},{"id":"4","op":"sub","inputs":["3",1]}]})"),
          pattern),
      Lines{"s=1 m=2 n2=3 out=4 x=a y=b"});
}

TEST(PatternBuilder, AttributesOptionalNodesAndChains) {
  PatternBuilder p("p");
  const auto x = p.input("x");
  const auto sum = p.op("sum", {x}).as("sum").attribute("axis", std::int64_t{1});
  const auto root = p.one_of({"sqrt", "rsqrt"}, {sum}).as("root").optional();
  p.with_trait("elementwise", {root}).as("chain").repeated(1, 2);
  const Pattern pattern = value_or_throw(p.build());
  EXPECT_EQ(pattern.variants().size(), 2U);
  const std::string head = R"({"nodes":[{"id":"1","op":"sum","inputs":["a"],"attrs":{"axis":1}},)";
  EXPECT_EQ(
      matches(graph_from(head +
                         R"({"id":"2","op":"sqrt","inputs":["1"]},{"id":"3","op":"neg","inputs":["2"]}]})"),
              pattern),
      (Lines{"sum=1 chain=[2 3] x=a", "sum=1 chain=[2] x=a", "sum=1 root=2 chain=[3] x=a"}));
  EXPECT_EQ(matches(graph_from(R"({"nodes":[{"id":"1","op":"sum","inputs":["a"],"attrs":{"axis":0}},
      {"id":"2","op":"neg","inputs":["1"]}]})"),
                    pattern),
            Lines{});
}

TEST(PatternBuilder, CostFunctionAndPredicate) {
  PatternBuilder p("p");
  p.op("exp", {p.input("x")}).as("e");
  p.cost({.compute = [](const Graph& graph, const Tile& tile) {
    return graph.id(tile.nodes[0]) == "1" ? 2.0 : 3.0;
  }});
  p.where([](const Graph& graph, const Tile& tile) { return graph.id(tile.nodes[0]) != "3"; });
  const Pattern pattern = value_or_throw(p.build());
  const Graph graph = graph_from("0:neg->1:exp->2:exp->3:exp");
  const Tiling tiling = tiling_of(graph, {pattern}, {.uncovered_cost = 10});
  EXPECT_EQ(tiling.candidates, 2U);
  EXPECT_EQ(tiling.cost, 25);
}

TEST(PatternBuilder, ACostFunctionMustGiveACost) {
  PatternBuilder p("p");
  p.op("exp", {p.input("x")});
  p.cost({.compute = [](const Graph&, const Tile&) { return -2.0; }});
  const auto tiling = tile(graph_from("1:neg->2:exp"), target_of({value_or_throw(p.build())}));
  ASSERT_FALSE(tiling);
  EXPECT_EQ(tiling.error().message(), "pattern \"p\": cost -2.0 is not a finite number of at least 0");
}

TEST(PatternBuilder, OutputsByResult) {
  PatternBuilder p("p");
  const auto halves = p.op("split", {p.input("x")}).as("s");
  p.output(p.op("exp", {halves}).as("e")).output(halves.result(1));
  const Pattern pattern = value_or_throw(p.build());
  EXPECT_EQ(
      matches(
          graph_from(R"({"nodes":[{"id":"1","op":"split","inputs":["a"]},{"id":"2","op":"exp","inputs":["1"]},
      {"id":"3","op":"log","inputs":["1:1"]}]})"),
          pattern),
      Lines{"s=1 e=2 x=a"});
}

TEST(PatternBuilder, MistakesComeOutOfBuild) {
  PatternBuilder p("p"), other("q");
  p.op("exp", {other.input("x")});
  EXPECT_EQ(p.build().error().message(), "input 0 of n0 is a value of another pattern");
  PatternBuilder external("p");
  external.input("x").as("y");
  EXPECT_EQ(external.build().error().message(),
            "an external input is no node: it has no id, no attributes and no further results");
  EXPECT_EQ(PatternBuilder("empty").build().error().message(), "the pattern is empty");
}

}  // namespace
