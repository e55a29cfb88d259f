#include "tessera/pattern/pattern_text.h"

#include <gtest/gtest.h>

#include "tessera/pattern/match_listing.h"

using namespace tessera::pattern;

namespace {

using Lines = std::vector<std::string>;

TEST(PatternText, TheExampleOfTheForm) {
  const Pattern pattern = pattern_from("1:mm->2:relu; 1->3:add @out=2,3 @cost=1.5");
  EXPECT_EQ(pattern.parts().nodes.size(), 3U);
  EXPECT_EQ(pattern.parts().cost.base, 1.5);
  EXPECT_EQ(pattern.parts().outputs, (std::vector<PatternOutput>{{.node = 1}, {.node = 2}}));
  EXPECT_EQ(matches(graph_from("a:mm->b:relu; a->c:add"), pattern), Lines{"1=a 2=b 3=c"});
}

TEST(PatternText, OutputsDefaultToTheSinksAndTheCostToOne) {
  const Pattern pattern = pattern_from("1:mm->2:relu; 1->3:add");
  EXPECT_EQ(pattern.parts().outputs, (std::vector<PatternOutput>{{.node = 1}, {.node = 2}}));
  EXPECT_EQ(pattern.parts().cost.base, 1);
}

TEST(PatternText, SlotsAreFilledInTheOrderOfTheEdges) {
  EXPECT_EQ(matches("a:exp->c:sub; b:log->c", "1:exp->3:sub; 2:log->3"), Lines{"1=a 3=c 2=b"});
  EXPECT_EQ(matches("b:log->c:sub; a:exp->c", "1:exp->3:sub; 2:log->3"), Lines{});
}

TEST(PatternText, UndrawnInputsAreOpen) {
  const std::string graph = R"({"nodes":[{"id":"m","op":"matmul","inputs":["x","w"]},
      {"id":"c","op":"concat","inputs":["m","m","y"]}]})";
  EXPECT_EQ(matches(graph, "1:matmul->2:concat"), Lines{"1=m 2=c"}) << "also a value from inside";
  EXPECT_EQ(matches(graph, "1:matmul->2:concat; 1->2"), Lines{"1=m 2=c"});
  EXPECT_EQ(matches(graph, "1:matmul->2:concat; 1->2; 1->2"), Lines{}) << "y is not drawn twice";
}

TEST(PatternText, ANodeMayHaveSeveralResults) {
  const std::string graph = "s:split->a:exp; s:1->b:log";
  EXPECT_EQ(matches(graph, "1:split->2:exp; 1:1->3:log"), Lines{"1=s 2=a 3=b"});
  EXPECT_EQ(matches(graph, "1:split->2:log; 1:1->3:exp"), Lines{});
  EXPECT_EQ(matches(graph, "1:split->2:exp"), Lines{}) << "the second result escapes";
  EXPECT_EQ(matches(graph, "1:split->2:exp @out=1:1,2"), Lines{"1=s 2=a"});
  EXPECT_EQ(matches(graph, "1:split->2:exp @out=1:0,2"), Lines{});
  EXPECT_EQ(matches(graph, "1:split->2:exp @out=1,2"), Lines{"1=s 2=a"});
}

TEST(PatternText, AlternativesTraitsAndOptionalNodes) {
  EXPECT_EQ(matches("a:mm->b:gelu", "1:mm->2:relu|gelu"), Lines{"1=a 2=b"});
  EXPECT_EQ(matches("a:mm->b:tanh", "1:mm->2:<elementwise>"), Lines{"1=a 2=b"});
  EXPECT_EQ(matches("a:mm->b:softmax", "1:mm->2:<elementwise>"), Lines{});
  const std::string optional = "1:mm->2:add?->3:relu";
  EXPECT_EQ(matches("a:mm->b:add->c:relu", optional), Lines{"1=a 2=b 3=c"});
  EXPECT_EQ(matches("a:mm->c:relu", optional), Lines{"1=a 3=c"});
  EXPECT_EQ(matches("a:mm->b:sub->c:relu", optional), Lines{});
}

TEST(PatternText, ChainsOfAnyLength) {
  const std::string graph = "a:mm->b:exp->c:neg->d:mm";
  EXPECT_EQ(matches(graph, "1:mm->2:<elementwise>+"), (Lines{"1=a 2=[b c]", "1=a 2=[b]"}));
  EXPECT_EQ(matches(graph, "1:mm->2:<elementwise>*->3:mm"), Lines{"1=a 2=[b c] 3=d"});
  EXPECT_EQ(matches("a:mm->d:mm", "1:mm->2:<elementwise>*->3:mm"), Lines{"1=a 3=d"});
  EXPECT_EQ(matches("a:mm->d:mm", "1:mm->2:<elementwise>+->3:mm"), Lines{});
}

TEST(PatternText, AChainKeepsItsValuesInside) {
  // b is read twice: no chain may run through it.
  EXPECT_EQ(matches("a:mm->b:exp->c:neg; b->d:sin", "1:mm->2:<elementwise>+"), Lines{"1=a 2=[b]"});
}

TEST(PatternText, EverySpellingMeansItsOp) {
  EXPECT_EQ(matches("a:torch.nn.functional.relu", "1:Relu"), Lines{"1=a"});
  EXPECT_EQ(matches("a:my_own_op", "1:my_own_op"), Lines{"1=a"});
}

TEST(PatternText, ErrorsGiveTheColumn) {
  const std::pair<const char*, const char*> rows[] = {
      {"", "pattern:1:1: expected a node, like 1:relu"},
      {"1:mm->", "pattern:1:7: expected a node after '->'"},
      {"1:mm->2", "pattern:1:7: node \"2\" is not defined; write \"2:op\" once"},
      {"1:mm->1:relu", "pattern:1:7: node \"1\" is defined twice"},
      {"1:mm 2:relu", "pattern:1:6: expected '->', ';' or '@'"},
      {"1:", "pattern:1:3: expected an op after \"1:\""},
      {"1:mm @out=7", "pattern:1:11: @out names \"7\", which is no node"},
      {"1:mm @cost=-1", "pattern:1:12: cost \"-1\" is not a finite number of at least 0"},
      {"1:mm @cost=inf", "pattern:1:12: cost \"inf\" is not a finite number of at least 0"},
      {"1:mm @cost=1 @cost=2", "pattern:1:14: option @cost is given twice"},
      {"1:mm @speed=1", "pattern:1:6: unknown option @speed of a pattern, expected @out, @cost or @kernel"},
      {"1:mm->2:<x", "pattern:1:9: expected a trait, like <elementwise>"},
      {"1:mm->2:<element>",
       "pattern:1:10: unknown trait \"element\", expected one of activation, associative, broadcast, "
       "commutative, composite, costly, data_dependent, elementwise, in_place, indexed, random, reduction, "
       "view"},
      {"1:mm->2:a||b", "pattern:1:11: expected an op"},
      {"1:mm; 2:relu", "pattern:1:1: the pattern is not connected: no path joins \"1\" and \"2\""},
      {"1:mm->2:relu->1", "pattern:1:1: the nodes form a cycle through \"1\""},
  };
  for (const auto& [text, message] : rows) EXPECT_EQ(pattern_error(text), message) << text;
}

TEST(GraphText, RefusesWhatOnlyPatternsHave) {
  EXPECT_EQ(graph_error("1:mm->2:relu?"), "graph:1:13: '?' is for patterns, not for graphs");
  EXPECT_EQ(graph_error("1:mm @cost=1"), "graph:1:6: unknown option @cost of a graph, expected @out");
  EXPECT_EQ(graph_error("0:a; 1:mm->2:relu->1"),
            "graph:1:6: the nodes form a cycle: \"1\" -> \"2\" -> \"1\"");
  EXPECT_EQ(graph_error("1:mm->2:relu->1"), "graph:1:1: the nodes form a cycle: \"1\" -> \"2\" -> \"1\"");
}

}  // namespace
