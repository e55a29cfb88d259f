#include "tessera/pattern/graph_json.h"

#include <gtest/gtest.h>

#include "tessera/base/text.h"
#include "tessera/pattern/match_listing.h"

using namespace tessera;
using namespace tessera::pattern;

namespace {

TEST(GraphJson, ReadsNodesInputsAndOutputs) {
  const Graph graph = graph_from(R"({"nodes":[{"id":"b","op":"Relu","inputs":["a"]},
      {"id":"a","op":"mm","inputs":["x","w"],"attrs":{"t":true}}],"outputs":["b","a"]})");
  ASSERT_EQ(graph.node_count(), 2U);
  EXPECT_EQ(graph.op_name(graph.op(0)), "relu");
  EXPECT_EQ(graph.op_name(graph.op(1)), "matmul");
  EXPECT_EQ(graph.producer(graph.inputs(0)[0]), 1U) << "nodes may be listed in any order";
  EXPECT_EQ(graph.order()[0], 1U);
  EXPECT_TRUE(graph.is_output(graph.result(0)));
  EXPECT_TRUE(graph.is_output(graph.result(1)));
  EXPECT_EQ(graph.external(graph.inputs(1)[0]).name, "x");
}

TEST(GraphJson, EqualNamesAreEqualValues) {
  const Graph graph = graph_from(R"({"nodes":[{"id":"1","op":"f","inputs":["x","y","x",1,1.0,1]}]})");
  const auto inputs = graph.inputs(0);
  EXPECT_EQ(inputs[0], inputs[2]);
  EXPECT_NE(inputs[0], inputs[1]);
  EXPECT_EQ(inputs[3], inputs[5]);
  EXPECT_NE(inputs[3], inputs[4]) << "an integer and a float are two constants";
}

TEST(GraphJson, OutputsDefaultToTheSinks) {
  const Graph graph =
      graph_from(R"({"nodes":[{"id":"1","op":"a"},{"id":"2","op":"b","inputs":["1"]},{"id":"3","op":"c"}]})");
  EXPECT_FALSE(graph.is_output(graph.result(0)));
  EXPECT_TRUE(graph.is_output(graph.result(1)));
  EXPECT_TRUE(graph.is_output(graph.result(2)));
  const Graph none_of_them = graph_from(R"({"nodes":[{"id":"1","op":"a"}],"outputs":[]})");
  EXPECT_FALSE(none_of_them.is_output(none_of_them.result(0)));
}

TEST(GraphJson, FurtherResultsAreReferredToByNumber) {
  const Graph graph = graph_from(R"({"nodes":[{"id":"s","op":"split","inputs":["x"]},
      {"id":"1","op":"a","inputs":["s:2"]},{"id":"2","op":"b","inputs":["s:0","s"]}]})");
  EXPECT_EQ(graph.result_count(0), 3U);
  EXPECT_EQ(graph.inputs(1)[0], graph.result(0, 2));
  EXPECT_EQ(graph.inputs(2)[0], graph.inputs(2)[1]) << "s is s:0";
  EXPECT_EQ(graph.value_name(graph.inputs(1)[0]), "s:2");
  // What only looks like it is an external.
  const Graph other = graph_from(R"({"nodes":[{"id":"1","op":"a","inputs":["x:1","1x:0"]}]})");
  EXPECT_EQ(other.producer(other.inputs(0)[0]), none);
}

TEST(GraphJson, MultiResultNodesEscapeByResult) {
  const std::string graph =
      R"({"nodes":[{"id":"s","op":"split","inputs":["x"]},{"id":"e","op":"exp","inputs":["s:1"]}],
      "outputs":["e","s:0"]})";
  const auto pattern = [](const std::string& outputs) {
    return R"({"nodes":[{"id":"a","op":"split","inputs":["x"]},{"id":"b","op":"exp","inputs":["a:1"]}],"outputs":)" +
           outputs + "}";
  };
  EXPECT_TRUE(matches(graph, pattern(R"(["b"])")).empty());
  EXPECT_TRUE(matches(graph, pattern(R"(["b","a:1"])")).empty());
  EXPECT_EQ(matches(graph, pattern(R"(["b","a:0"])")).size(), 1U);
  EXPECT_EQ(matches(graph, pattern(R"(["b","a"])")).size(), 1U);
}

TEST(GraphJson, Errors) {
  const std::pair<const char*, const char*> rows[] = {
      {R"({"nodes":[{"id":"1","op":"a"},{"id":"1","op":"b"}]})",
       "graph:1:37: nodes[1].id: node id \"1\" is used twice"},
      {R"({"nodes":[{"id":"1","op":"a"}],"outputs":["2"]})", "graph:1:43: outputs[0]: \"2\" is no node id"},
      {R"({"nodes":[{"id":"1","op":"a","inputs":["2"]},{"id":"2","op":"b","inputs":["1"]}]})",
       "graph:1:17: the nodes form a cycle: \"1\" -> \"2\" -> \"1\""},
      {R"({"nodes":[{"id":"","op":"a"}]})", "graph:1:17: nodes[0].id: expected an id, got an empty string"},
      {R"({"nodes":[{"id":"1","op":""}]})", "graph:1:26: nodes[0].op: expected an op, got an empty string"},
      {R"({"nodes":[{"id":"1"}]})", "graph:1:11: nodes[0]: missing field \"op\""},
      {R"({"nodes":{}})", "graph:1:10: nodes: expected an array, got an object"},
      {R"({"nodes":[{"id":"1","op":"a"},{"id":"1:0","op":"b"}]})",
       "graph:1:1: node id \"1:0\" also reads as a result of another node"},
      {R"({"nodes":[{"id":"s","op":"a"},{"id":"1","op":"b","inputs":["s:01"]}]})",
       "graph:1:60: nodes[1].inputs[0]: \"s:01\" is no result, expected a number from 0 to 9999"},
      {R"({"nodes":[{"id":"s","op":"a","results":[{},{}]},{"id":"1","op":"b","inputs":["s:2"]}]})",
       "graph:1:78: node \"s\" lists 2 results, but result 2 is used"},
      {"{\"nodes\":[{\"id\":\"0\",\"op\":\"a\"},\n {\"id\":\"1\",\"op\":\"a\",\"inputs\":[\"0\",\"1\"]}]}",
       "graph:2:8: the nodes form a cycle: \"1\" -> \"1\""},
      {R"({})", "graph:1:1: missing field \"nodes\""},
  };
  for (const auto& [text, message] : rows) EXPECT_EQ(graph_error(text), message) << text;
}

TEST(GraphJson, AShortFileCannotNameMillionsOfResults) {
  std::string text = R"({"nodes":[)";
  for (int i = 0; i < 200; ++i)
    text += cat(R"({"id":"n)", i, R"(","op":"a","inputs":["m)", i, R"(:9999"]},)");
  for (int i = 0; i < 200; ++i) text += cat(i == 0 ? "" : ",", R"({"id":"m)", i, R"(","op":"a"})");
  EXPECT_NE(graph_error(text + "]}").find("results besides their first ones"), std::string::npos);
}

}  // namespace
