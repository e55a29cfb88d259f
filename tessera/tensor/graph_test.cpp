#include "tessera/tensor/graph.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <unordered_map>

#include "tessera/tensor/create.h"
#include "tessera/tensor/ops.h"
#include "tests/support/message.h"

using namespace tessera;
using tessera::fixture::message_of;

namespace {

TEST(Graph, inputs_stand_before_what_uses_them) {
  const Tensor a = tensor({1}), b = a + 1, c = b * a, d = c - b;
  const auto nodes = d.graph().nodes();
  std::unordered_map<std::uint64_t, std::size_t> place;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (const NodeId& input : nodes[i].inputs)
      if (input.low != 0) {
        EXPECT_TRUE(place.contains(input.low));
      }
    place[nodes[i].id.low] = i;
  }
  EXPECT_EQ(nodes.size(), 4U);
  EXPECT_EQ(d.graph().outputs(), std::vector{node_id(d)});
}

TEST(Graph, evaluation_does_not_forget_what_is_looked_at) {
  const Tensor x = tensor({1}) + 1, y = x * 2;
  const Graph before = y.graph();
  eval(y);
  EXPECT_EQ(before.size(), 3U);
  EXPECT_TRUE(before.node(node_id(y)).evaluated);
}

TEST(Graph, evaluation_severs_what_nobody_looks_at) {
  const Tensor y = (tensor({1}) + 1) * 2;
  eval(y);
  EXPECT_EQ(y.graph().size(), 1U);
}

TEST(Graph, merge_joins_both_handles) {
  const Tensor a = tensor({1}) + 1, b = tensor({2}) * 3;
  Graph left = a.graph();
  const Graph right = b.graph();
  EXPECT_FALSE(left.same_as(right));
  const NodeId id = node_id(a);
  left.merge(right);
  left.merge(right);
  EXPECT_TRUE(right.same_as(left));
  EXPECT_EQ(left.size(), 4U);
  EXPECT_EQ(right.topological_order(), left.topological_order());
  EXPECT_EQ(right.node(id).op, "add");
  EXPECT_EQ(node_id(a), id);
}

TEST(Graph, an_unknown_id_is_an_error) { EXPECT_THROW((void)tensor({1}).graph().node({1, 2}), Exception); }

TEST(Graph, nodes_are_tensors) {
  const Tensor x = tensor({1, 2}), y = exp(x + 1);
  const Graph graph = y.graph();
  const auto tensors = graph.tensors();
  ASSERT_EQ(tensors.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(node_id(tensors[i]), graph.topological_order()[i]);
  EXPECT_EQ(graph.tensor(node_id(y)).node(), y.node());
  EXPECT_EQ(tensors[1].to_vector<float>(), (std::vector<float>{2, 3}));
  EXPECT_EQ(graph.engine(), x.engine());
}

TEST(Graph, a_severed_node_says_nothing_of_its_past) {
  const Tensor x = full({2}, 3);
  x.eval();
  EXPECT_EQ(x.graph().nodes()[0].op, "");
  EXPECT_EQ(x.graph().nodes()[0].attributes, "");
}

TEST(Graph, graphviz_draws_it) {
  if (std::system("dot -V >/dev/null 2>&1") != 0) GTEST_SKIP() << "Graphviz is not installed";
  const auto folder = std::filesystem::temp_directory_path() / "tessera_graph_test";
  std::filesystem::create_directories(folder);
  const std::string dot = folder / "g.dot", svg = folder / "g.svg";
  const Tensor x = ones({2, 3});
  sum(exp(x) + x.transpose().reshape({2, 3}), {.axes = {1}}).graph().to_dot(dot);
  EXPECT_EQ(std::system(("dot -Tsvg " + dot + " -o " + svg).c_str()), 0);
  EXPECT_GT(std::filesystem::file_size(svg), 1000U);
  std::filesystem::remove_all(folder);
}

TEST(Graph, text_has_a_line_per_node) {
  const Tensor y = tensor({1}) + 1;
  const std::string text = y.graph().to_text();
  EXPECT_NE(text.find("%1 = add"), std::string::npos) << text;
  EXPECT_NE(text.find("graph_test.cpp:"), std::string::npos) << text;
}

TEST(Graph, lookups_see_what_is_joined_and_what_goes) {
  const Tensor a = tensor({1}), b = tensor({2});
  const Graph graph = a.graph();
  EXPECT_THROW((void)graph.node(node_id(b)), Exception);
  {
    const Tensor sum = a + b;
    const Graph whole = sum.graph();
    EXPECT_EQ(graph.tensor(node_id(b)).node(), b.node());
    EXPECT_EQ(graph.node(node_id(sum)).op, "add");
  }
  EXPECT_THROW((void)graph.node(node_id(b)), Exception);  // the graph that showed it is gone
  EXPECT_EQ(graph.node(node_id(a)).op, "");
  Graph other = b.graph();
  EXPECT_EQ(graph.size(), 2U);  // the sum joined them for good
  const Tensor c = tensor({3});
  other.merge(c.graph());
  EXPECT_THROW((void)graph.node(node_id(c)), Exception);
  const Graph third = c.graph();
  EXPECT_EQ(graph.node(node_id(c)).op, "");
}

TEST(Graph, every_node_is_looked_up_in_linear_time) {
  Tensor x = tensor({1});
  const Tensor y = x;
  for (int i = 0; i < 50'000; ++i) x = x + y;
  const Graph graph = x.graph();
  std::size_t inputs = 0;
  for (const NodeId& id : graph.topological_order()) inputs += graph.inputs(id).size();
  EXPECT_EQ(inputs, 100'000U);  // a walk for each of them would take minutes
}

TEST(Graph, errors_name_the_callers_line) {
  const std::string message = message_of([] { (void)tensor({1}).graph().node({1, 2}); });
  EXPECT_NE(message.find("graph_test.cpp"), std::string::npos) << message;
}

}  // namespace
