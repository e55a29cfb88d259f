#include "tessera/pattern/graph_function.h"

#include <gtest/gtest.h>

#include "tessera/ir/parse.h"
#include "tessera/pattern/match_listing.h"
#include "tessera/pattern/region_grower.h"
#include "tests/support/op_facts.h"

using namespace tessera;
using namespace tessera::pattern;

namespace {

Graph graph_of_text(const char* text) {
  const ir::NodeRef node = value_or_throw(ir::parse(text));
  const auto* function = ir::as<ir::Function>(*node);
  EXPECT_NE(function, nullptr);
  return value_or_throw(graph_of(*function, op::op_facts()));
}

constexpr const char* mlp = R"(func mlp[N](x: f32[N, 8], w: f32[8, 4], b: f32[4]) {
  p: f32[N, 4] = matmul(x, w)
  s: f32[N, 4] = add(p, b)
  y: f32[N, 4] = relu(s)
  z: f32[N, 4] = mul(y, 0.5)
  return y, z
})";

TEST(GraphOfFunction, NodesAreStatements) {
  const Graph graph = graph_of_text(mlp);
  ASSERT_EQ(graph.node_count(), 4U);
  EXPECT_EQ(graph.id(0), "p");
  EXPECT_EQ(graph.op_name(graph.op(1)), "add");
  EXPECT_TRUE(graph.is_output(graph.result(2)));
  EXPECT_TRUE(graph.is_output(graph.result(3)));
  EXPECT_FALSE(graph.is_output(graph.result(1)));
  EXPECT_EQ(graph.external(graph.inputs(3)[1]).kind, External::Kind::constant);
}

TEST(GraphOfFunction, PatternsAndRegionsFit) {
  const Graph graph = graph_of_text(mlp);
  EXPECT_EQ(matches(graph, pattern_from("1:mm->2:add->3:relu")).size(), 1U);
  EXPECT_TRUE(matches(graph, pattern_from("3:relu->4:mul")).empty()) << "y escapes";
  Target target = target_of({pattern_from("1:mm")});
  target.sources.push_back(std::make_shared<RegionGrower>());
  const Tiling tiling = value_or_throw(tile(graph, target));
  EXPECT_EQ(tiles_of(graph, tiling), (std::vector<std::string>{"p: p", "region: s y z"}));
}

TEST(GraphOfFunction, RegionsOfTheProgramAreOpaque) {
  const Graph graph = graph_of_text(R"(func f(c: bool[], x: f32[2]) {
    a: f32[2] = exp(x)
    y: f32[2] = if c with (a) (a: f32[2]) { b: f32[2] = neg(a) return b } else (a: f32[2]) { return a }
    z: f32[2] = sin(y)
    return z
  })");
  ASSERT_EQ(graph.node_count(), 3U);
  EXPECT_TRUE(graph.is_opaque(1));
  EXPECT_TRUE(matches(graph, pattern_from("1:exp->2:<elementwise>")).empty());
  const Tiling tiling = tiling_of(graph, {pattern_from("1:<elementwise>")});
  EXPECT_EQ(tiling.tiles.size(), 2U);
  EXPECT_EQ(tiling.cost, 2) << "what no tile can cover costs nothing";
}

}  // namespace
