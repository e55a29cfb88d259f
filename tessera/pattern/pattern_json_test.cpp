#include "tessera/pattern/pattern_json.h"

#include <gtest/gtest.h>

#include "tessera/base/text.h"
#include "tessera/pattern/library.h"
#include "tessera/pattern/match_listing.h"
#include "tessera/pattern/pattern_builder.h"

using namespace tessera;
using namespace tessera::pattern;

namespace {

using Lines = std::vector<std::string>;

/// A graph of one op, and a pattern of one, with these attributes.
std::string graph_with(std::string_view attrs) {
  return cat(R"({"nodes":[{"id":"1","op":"softmax","inputs":["x"],"attrs":)", attrs, "}]}");
}
std::string pattern_with(std::string_view attrs) {
  return cat(R"({"nodes":[{"id":"s","op":"softmax","inputs":["x"],"attrs":)", attrs, "}]}");
}
bool fits(std::string_view graph_attrs, std::string_view pattern_attrs) {
  return !matches(graph_with(graph_attrs), pattern_with(pattern_attrs)).empty();
}

TEST(PatternJson, AttributesThatAreListedAreComplete) {
  EXPECT_TRUE(fits(R"({"axis":1})", R"({"axis":1})"));
  EXPECT_FALSE(fits(R"({"axis":2})", R"({"axis":1})"));
  EXPECT_FALSE(fits("{}", R"({"axis":1})"));
  EXPECT_FALSE(fits(R"({"axis":1,"keep":true})", R"({"axis":1})"));
  EXPECT_FALSE(fits(R"({"axis":1})", "{}"));
  EXPECT_TRUE(fits("{}", "{}"));
  const std::string open = R"({"nodes":[{"id":"s","op":"softmax","inputs":["x"]}]})";
  EXPECT_EQ(matches(graph_with(R"({"axis":1})"), open).size(), 1U) << "without a list all are open";
}

TEST(PatternJson, AttributeTypesAndValues) {
  EXPECT_TRUE(fits(R"({"a":1})", R"({"a":1.0})")) << "the same number";
  EXPECT_FALSE(fits(R"({"a":true})", R"({"a":1})"));
  EXPECT_FALSE(fits(R"({"a":"1"})", R"({"a":1})"));
  EXPECT_TRUE(fits(R"({"a":[1,2]})", R"({"a":[1,2]})"));
  EXPECT_FALSE(fits(R"({"a":[2,1]})", R"({"a":[1,2]})"));
  EXPECT_FALSE(fits(R"({"a":0.0})", R"({"a":-0.0})")) << "floats count by bits";
  EXPECT_TRUE(fits(R"({"a":null})", "{}")) << "null is no attribute";
}

TEST(PatternJson, AttributeConditions) {
  EXPECT_TRUE(fits(R"({"a":3})", R"({"a":{"in":[1,3]}})"));
  EXPECT_FALSE(fits(R"({"a":2})", R"({"a":{"in":[1,3]}})"));
  EXPECT_TRUE(fits(R"({"a":2})", R"({"a":{"min":2,"max":4}})"));
  EXPECT_FALSE(fits(R"({"a":5})", R"({"a":{"min":2,"max":4}})"));
  EXPECT_FALSE(fits(R"({"a":"x"})", R"({"a":{"min":2}})"));
  EXPECT_FALSE(fits(R"({"a":2})", R"({"a":{"not":2}})"));
  EXPECT_TRUE(fits("{}", R"({"a":{"in":[1],"optional":true}})"));
  EXPECT_FALSE(fits(R"({"a":2})", R"({"a":{"in":[1],"optional":true}})"));
  EXPECT_TRUE(fits("{}", R"({"a":{"absent":true}})"));
  EXPECT_FALSE(fits(R"({"a":2})", R"({"a":{"absent":true}})"));
  EXPECT_TRUE(fits(R"({"a":2})", R"({"a":{}})")) << "any value";
}

TEST(PatternJson, CapturedAttributesAreReportedAndEqualNamesAreEqualValues) {
  const std::string pattern = R"({"nodes":[
      {"id":"a","op":"sum","inputs":["x"],"attrs":{"axis":{"capture":"axis"}}},
      {"id":"b","op":"softmax","inputs":["a"],"attrs":{"axis":{"capture":"axis"}}}]})";
  const auto graph = [](int second) {
    return graph_from(cat(R"({"nodes":[{"id":"1","op":"sum","inputs":["x"],"attrs":{"axis":1}},
      {"id":"2","op":"softmax","inputs":["1"],"attrs":{"axis":)",
                          second, "}}]}"));
  };
  EXPECT_EQ(matches(graph(0), pattern_from(pattern)), Lines{});
  const Tiling tiling = tiling_of(graph(1), {pattern_from(pattern)});
  ASSERT_EQ(tiling.tiles.size(), 1U);
  ASSERT_EQ(tiling.tiles[0].captures.size(), 2U);
  EXPECT_EQ(tiling.tiles[0].captures[0].name, "axis");
  EXPECT_EQ(std::get<std::int64_t>(tiling.tiles[0].captures[0].value), 1);
}

TEST(PatternJson, Constants) {
  const std::string graph = R"({"nodes":[{"id":"1","op":"mul","inputs":["x",0.5]},
      {"id":"2","op":"add","inputs":["1",2]}]})";
  const auto half = [](std::string_view constant) {
    return cat(R"({"nodes":[{"id":"m","op":"mul","inputs":[)", constant, R"(,"x"]}]})");
  };
  EXPECT_EQ(matches(graph, half("0.5")), Lines{"m=1 x=x"});
  EXPECT_EQ(matches(graph, half("0.25")), Lines{});
  EXPECT_EQ(matches(graph, half(R"({"constant":true})")), Lines{"m=1 x=x"});
  EXPECT_EQ(matches(graph, half(R"({"constant":{"min":0,"max":1},"name":"c"})")), Lines{"m=1 c=0.5 x=x"});
  EXPECT_EQ(matches(graph, half(R"({"constant":{"min":1}})")), Lines{});
  EXPECT_EQ(matches(R"({"nodes":[{"id":"1","op":"mul","inputs":["x","y"]}]})", half(R"({"constant":true})")),
            Lines{})
      << "an input is no constant";
}

TEST(PatternJson, NamedExternalsHaveIdentity) {
  const std::string pattern = R"({"nodes":[{"id":"a","op":"sub","inputs":["x","y"]},
      {"id":"b","op":"div","inputs":["a","x"]}]})";
  const auto graph = [](const char* third) {
    return cat(R"({"nodes":[{"id":"1","op":"sub","inputs":["p","q"]},{"id":"2","op":"div","inputs":["1",")",
               third, R"("]}]})");
  };
  EXPECT_EQ(matches(graph("p"), pattern), Lines{"a=1 b=2 x=p y=q"});
  EXPECT_EQ(matches(graph("q"), pattern), Lines{}) << "one name never binds two values";
  const std::string same =
      R"({"nodes":[{"id":"1","op":"sub","inputs":["p","p"]},{"id":"2","op":"div","inputs":["1","p"]}]})";
  EXPECT_EQ(matches(same, pattern), Lines{"a=1 b=2 x=p y=p"}) << "two names may bind one value";
  EXPECT_EQ(matches(graph("q"), R"({"nodes":[{"id":"a","op":"sub","inputs":[null,null]},
      {"id":"b","op":"div","inputs":["a",null]}]})"),
            Lines{"a=1 b=2"})
      << "null is any value";
}

TEST(PatternJson, AnExternalMayBeAResultFromOutside) {
  const std::string graph =
      R"({"nodes":[{"id":"0","op":"exp","inputs":["p"]},{"id":"1","op":"sub","inputs":["0","q"]}]})";
  EXPECT_EQ(matches(graph, R"({"nodes":[{"id":"a","op":"sub","inputs":["x","y"]}]})"), Lines{"a=1 x=0 y=q"});
}

TEST(PatternJson, CommutativityIsTheGraphs) {
  const std::string pattern =
      R"({"nodes":[{"id":"n","op":"neg","inputs":["x"]},{"id":"f","op":"f","inputs":["n","y"]}]})";
  const auto graph = [](const char* commutative) {
    return cat(
        R"({"nodes":[{"id":"1","op":"neg","inputs":["p"]},{"id":"2","op":"f","inputs":["q","1"]}],"commutative":)",
        commutative, "}");
  };
  EXPECT_EQ(matches(graph(R"(["f"])"), pattern), Lines{"n=1 f=2 x=p y=q"});
  EXPECT_EQ(matches(graph("[]"), pattern), Lines{});
  // An empty list also takes it from add.
  const std::string sum =
      R"({"nodes":[{"id":"1","op":"neg","inputs":["p"]},{"id":"2","op":"add","inputs":["q","1"]}],"commutative":[]})";
  EXPECT_EQ(
      matches(sum,
              R"({"nodes":[{"id":"n","op":"neg","inputs":["x"]},{"id":"a","op":"add","inputs":["n","y"]}]})"),
      Lines{});
}

TEST(PatternJson, OptionalNodesPassTheirFirstNodeInput) {
  const std::string pattern = R"({"nodes":[{"id":"m","op":"matmul","inputs":["x","w"]},
      {"id":"b","op":"add","inputs":["m","bias"],"optional":true},
      {"id":"r","op":["relu","gelu"],"inputs":["b"]}]})";
  EXPECT_EQ(
      matches(R"({"nodes":[{"id":"1","op":"mm","inputs":["p","q"]},{"id":"2","op":"add","inputs":["c","1"]},
      {"id":"3","op":"gelu","inputs":["2"]}]})",
              pattern),
      Lines{"m=1 b=2 r=3 x=p w=q bias=c"});
  EXPECT_EQ(
      matches(R"({"nodes":[{"id":"1","op":"mm","inputs":["p","q"]},{"id":"3","op":"relu","inputs":["1"]}]})",
              pattern),
      Lines{"m=1 r=3 x=p w=q"});
}

TEST(PatternJson, RepeatedNodesWithBounds) {
  const std::string graph = "a:mm->b:exp->c:neg->d:sin->e:cos";
  const std::string pattern = R"({"nodes":[{"id":"m","op":"matmul"},
      {"id":"c","trait":"elementwise","inputs":["m"],"repeat":{"min":2,"max":3}}]})";
  EXPECT_EQ(matches(graph, pattern), (Lines{"m=a c=[b c d]", "m=a c=[b c]"}));
}

TEST(PatternJson, DtypesCount) {
  const auto graph = [](const char* dtype) {
    return cat(R"({"nodes":[{"id":"1","op":"exp","inputs":["x"],"dtype":")", dtype, R"("}]})");
  };
  const std::string pattern = R"({"nodes":[{"id":"e","op":"exp","inputs":["x"],"dtype":["f32","f16"]}]})";
  EXPECT_EQ(matches(graph("f32"), pattern).size(), 1U);
  EXPECT_EQ(matches(graph("f64"), pattern), Lines{});
  EXPECT_EQ(matches(R"({"nodes":[{"id":"1","op":"exp","inputs":["x"]}]})", pattern), Lines{}) << "not known";
}

TEST(PatternJson, CostAndKernel) {
  const Pattern pattern = pattern_from(
      R"({"nodes":[{"id":"e","op":"exp"},{"id":"n","trait":"elementwise","inputs":["e"],"repeat":true}],
          "cost":{"base":2,"per_node":0.5},"kernel":"loop"})");
  const Graph graph = graph_from("1:exp->2:neg->3:sin");
  const Tiling tiling = tiling_of(graph, {pattern}, {.uncovered_cost = 10});
  EXPECT_EQ(tiling.cost, 3.5);
  EXPECT_EQ(tiling.tiles[0].kernel(), "loop");
}

TEST(PatternJson, Errors) {
  const std::pair<const char*, const char*> rows[] = {
      {R"({"nodes":[]})", "patterns[0].nodes: pattern \"p\" is empty"},
      {R"({"nodes":[{"id":"a","op":"x"},{"id":"a","op":"x"}]})",
       "patterns[0].nodes[1].id: node id \"a\" is used twice"},
      {R"({"nodes":[{"id":"a","op":"x"}],"cost":-1})", "patterns[0].cost: cost -1.0 is negative"},
      {R"({"nodes":[{"id":"a","op":"x"}],"cost":1e999})",
       "patterns[0].cost: expected a finite number, got 1e999"},
      {R"({"nodes":[{"id":"a","op":"x"}],"outputs":["b"]})",
       "patterns[0].outputs[0]: \"b\" is no node id of the pattern"},
      {R"({"nodes":[{"id":"a","op":"x","inputs":["b"]},{"id":"b","op":"x","inputs":["a"]}]})",
       "patterns[0]: the nodes form a cycle through \"a\""},
      {R"({"nodes":[{"id":"a","op":"x"},{"id":"b","op":"x"}]})",
       "patterns[0]: the pattern is not connected: no path joins \"a\" and \"b\""},
      {R"({"nodes":[{"id":"a","op":"x","inputs":["y"]},{"id":"b","op":"x","inputs":["y"]}]})",
       "patterns[0]: the pattern is not connected: no path joins \"a\" and \"b\""},
      {R"({"nodes":[{"id":"a"}]})", "patterns[0].nodes[0]: missing field \"op\""},
      {R"({"nodes":[{"id":"a","op":"x","trait":"y"}]})",
       "patterns[0].nodes[0].trait: expected an op or a trait, got both"},
      {R"({"nodes":[{"id":"a","trait":["elementwise","heavy"]}]})",
       "patterns[0].nodes[0].trait: unknown trait \"heavy\", expected one of activation, "
       "associative, broadcast, commutative, composite, costly, data_dependent, elementwise, in_place, "
       "indexed, random, reduction, view"},
      {R"({"nodes":[{"id":"a","op":"x"}]},{"name":"q","nodes":[{"id":"a","op":"x"}]},
           {"name":"p","nodes":[{"id":"a","op":"y"}]})",
       "patterns[2].name: pattern name \"p\" is used twice"},
      {R"({"nodes":[{"id":"a","op":"x"}]},{"name":"","nodes":[{"id":"a","op":"x"}]})",
       "patterns[1].name: expected a name, got an empty string"},
      {R"({"nodes":[{"id":"a","op":"x","repeat":{"min":3,"max":2}}]})",
       "patterns[0].nodes[0].repeat: min 3 is larger than max 2"},
  };
  for (const auto& [text, message] : rows) {
    const std::string error = pattern_error(text);
    EXPECT_TRUE(error.starts_with("pattern:")) << text << "\n" << error;
    EXPECT_TRUE(error.ends_with(message)) << text << "\n" << error;
  }
}

TEST(PatternJson, AGraphMayHaveTraitsOfItsOwn) {
  const Graph graph = graph_from(R"({"nodes":[{"id":"1","op":"a"},{"id":"2","op":"b"}],
      "traits":{"heavy":["b"]}})");
  const auto document = value_or_throw(
      JsonDocument::parse("library", R"({"patterns":[{"name":"p","nodes":[{"id":"x","trait":"heavy"}]}]})"));
  const auto patterns = value_or_throw(read_patterns(document, graph.facts()));
  EXPECT_EQ(matches(graph, patterns[0]), std::vector<std::string>{"x=2"});
}

TEST(PatternJson, ATraitThatTheGraphDoesNotHaveIsAnError) {
  const Graph graph = graph_from("1:a");
  PatternBuilder p("p");
  p.with_trait("heavy", {}).as("x");
  const auto tiling = tile(graph, target_of({value_or_throw(p.build())}));
  ASSERT_FALSE(tiling);
  EXPECT_TRUE(tiling.error().message().starts_with(
      "pattern \"p\": node \"x\": unknown trait \"heavy\", expected one of "));
}

}  // namespace
