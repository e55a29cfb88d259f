#include "tessera/pattern/region_grower.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <set>
#include <thread>

#include "tessera/base/text.h"
#include "tessera/pattern/fusion_stages.h"
#include "tessera/pattern/graph_builder.h"
#include "tessera/pattern/match_listing.h"
#include "tests/support/op_facts.h"
#include "tests/support/repeats.h"

using namespace tessera;
using namespace tessera::pattern;

namespace {

using Nodes = std::vector<NodeId>;
using Regions = std::set<Nodes>;

struct Listing {
  Regions regions = {};
  std::size_t count = 0;  ///< with repeats, if there are any
  std::vector<std::string> gaps = {};
};

Listing grown(const Graph& graph, RegionOptions options = {}) {
  CandidateList list;
  value_or_throw(RegionGrower(std::move(options)).list(graph, list));
  Listing out{.count = list.size(), .gaps = list.gaps()};
  for (std::size_t i = 0; i < list.size(); ++i) {
    const auto nodes = list.nodes(i);
    out.regions.insert({nodes.begin(), nodes.end()});
  }
  return out;
}

/// A chain of ops over one space; `x` is an op that cannot be in a region.
Graph chain(std::initializer_list<const char*> ops) {
  GraphBuilder builder(op::op_facts());
  const ValueType type{ir::Dtype::f32, builder.shape({ir::Dim(4)})};
  ValueId value = builder.input("x");
  for (const char* op : ops) value = builder.add(op, {value}, {}, type);
  builder.set_sinks_as_outputs();
  return value_or_throw(std::move(builder).build());
}

TEST(RegionGrower, ListsEveryRunOfAChain) {
  const Listing found = grown(chain({"relu", "exp", "matmul", "neg"}));
  EXPECT_EQ(found.regions, (Regions{{0}, {1}, {0, 1}, {3}}));
  EXPECT_EQ(found.count, 4U);
  EXPECT_TRUE(found.gaps.empty());
}

TEST(RegionGrower, ListsTheMaximalOneBeyondTheLimit) {
  const Listing found = grown(chain({"abs", "exp", "neg", "sin", "cos"}), {.largest = 2});
  EXPECT_EQ(found.regions,
            (Regions{{0}, {1}, {2}, {3}, {4}, {0, 1}, {1, 2}, {2, 3}, {3, 4}, {0, 1, 2, 3, 4}}));
  EXPECT_TRUE(found.gaps.empty());
}

TEST(RegionGrower, KeepsIterationSpacesApart) {
  // Softmax over [4, 8]: the reductions run over their inputs, so all of it is one loop nest; what follows
  // works on [4] and is another.
  const Graph graph = graph_from(R"({"nodes":[
    {"id":"max","op":"max","inputs":["x"],"shape":[4,1]},
    {"id":"sub","op":"sub","inputs":["x","max"],"shape":[4,8]},
    {"id":"exp","op":"exp","inputs":["sub"],"shape":[4,8]},
    {"id":"sum","op":"sum","inputs":["exp"],"shape":[4,1]},
    {"id":"log","op":"log","inputs":["sum"],"shape":[4,1]},
    {"id":"div","op":"div","inputs":["exp","sum"],"shape":[4,8]}],
    "externals":{"x":{"shape":[4,8]}}})");
  const Listing found = grown(graph);
  EXPECT_TRUE(found.regions.contains({0, 1, 2, 3, 5}));
  EXPECT_TRUE(found.regions.contains({4}));
  EXPECT_FALSE(found.regions.contains({3, 4}));
  EXPECT_FALSE(found.regions.contains({2, 5})) << "not convex: exp, sum, div";
}

TEST(RegionGrower, SaysWhatItCouldNotKnow) {
  const Listing found = grown(graph_from("1:relu->2:exp"));
  EXPECT_TRUE(found.regions.empty());
  ASSERT_EQ(found.gaps.size(), 1U);
  EXPECT_EQ(found.gaps[0], "regions: the iteration space of 2 ops is not known");
}

TEST(RegionGrower, SaysWhenItWasNotComplete) {
  const Graph graph = chain({"abs", "exp", "neg", "sin", "cos"});
  const Listing found = grown(graph, {.regions_per_node = 2});
  ASSERT_EQ(found.gaps.size(), 1U);
  EXPECT_EQ(found.gaps[0], "regions: some of more than 2 ops");
}

TEST(RegionGrower, RefusesACostThatIsNone) {
  CandidateList list;
  const RegionGrower grower({.cost = [](const Graph&, std::span<const NodeId>) { return -1.0; }});
  const auto result = grower.list(chain({"abs"}), list);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message(), "a region of 1 ops: cost -1.0 is not a finite number of at least 0");
}

TEST(RegionGrower, ALongChainIsOneMaximalRegion) {
  GraphBuilder builder(op::op_facts());
  const ValueType type{ir::Dtype::f32, builder.shape({ir::Dim(4)})};
  ValueId value = builder.input("x");
  constexpr std::size_t length = 100'000;
  for (std::size_t i = 0; i < length; ++i) value = builder.add("relu", {value}, {}, type);
  builder.set_output(value);
  const Graph graph = value_or_throw(std::move(builder).build());
  CandidateList list;
  value_or_throw(RegionGrower().list(graph, list));
  EXPECT_EQ(list.size(), 8 * length - 28 + 1);
  EXPECT_EQ(list.nodes(length).size(), length) << "the largest comes behind the single ops";
  EXPECT_TRUE(list.gaps().empty());
}

TEST(RegionGrower, TilesNextToALibrary) {
  const Graph graph = graph_from(R"({"nodes":[
    {"id":"m","op":"matmul","inputs":["x","w"],"shape":[4,8]},
    {"id":"a","op":"add","inputs":["m","b"],"shape":[4,8]},
    {"id":"r","op":"relu","inputs":["a"],"shape":[4,8]},
    {"id":"e","op":"exp","inputs":["r"],"shape":[4,8]}]})");
  Target target = target_of({pattern_from("1:matmul->2:add @cost=3"), pattern_from("1:matmul @cost=2.5")});
  target.sources.push_back(std::make_shared<RegionGrower>());
  const Tiling tiling = value_or_throw(tile(graph, target));
  EXPECT_EQ(tiles_of(graph, tiling), (std::vector<std::string>{"p: m", "region: a r e"}));
  EXPECT_EQ(tiling.cost, 3.5);
  EXPECT_EQ(tiling.tiles[1].source, 1U);
  EXPECT_EQ(tiling.tiles[1].inputs.size(), 2U);
  EXPECT_EQ(tiling.tiles[1].outputs.size(), 1U);
}

// ---- against every subset

struct SmallGraph {
  Graph graph;
  std::vector<std::uint32_t> space = {};  ///< by node; 0: in no region
};

SmallGraph random_graph(std::mt19937& random) {
  const std::uint32_t nodes = 2 + random() % 9;
  GraphBuilder builder(op::op_facts());
  const ShapeId shapes[] = {builder.shape({ir::Dim(4), ir::Dim(8)}), builder.shape({ir::Dim(4)})};
  SmallGraph out{.graph = chain({"abs"})};
  std::vector<ValueId> values{builder.input("x")};
  for (std::uint32_t i = 0; i < nodes; ++i) {
    const bool is_light = random() % 4 != 0;
    const std::uint32_t space = random() % 5 == 0 ? 1 : 0;
    std::vector<ValueId> inputs{values[random() % values.size()]};
    if (random() % 2 == 0) inputs.push_back(values[random() % values.size()]);
    values.push_back(
        builder.add(is_light ? "maximum" : "matmul", inputs, {}, {ir::Dtype::f32, shapes[space]}));
    out.space.push_back(is_light ? space + 1 : 0);
  }
  builder.set_sinks_as_outputs();
  out.graph = value_or_throw(std::move(builder).build());
  return out;
}

/// By definition: one space, connected, and no path that leaves and comes back.
bool is_region(const SmallGraph& small, std::uint32_t set) {
  const Graph& graph = small.graph;
  std::uint32_t space = 0;
  for (NodeId node = 0; node < graph.node_count(); ++node) {
    if ((set >> node & 1) == 0) continue;
    if (small.space[node] == 0 || (space != 0 && space != small.space[node])) return false;
    space = small.space[node];
  }
  std::uint32_t reached = set & (~set + 1);
  for (std::uint32_t before = 0; before != reached;) {
    before = reached;
    for (NodeId node = 0; node < graph.node_count(); ++node)
      for (NodeId from : graph.predecessors(node)) {
        const std::uint32_t both = 1U << node | 1U << from;
        if ((set & both) == both && (reached & both) != 0) reached |= both;
      }
  }
  if (reached != set) return false;
  std::uint32_t left = 0;  // outside, behind a node of the set; nodes are numbered in order
  for (NodeId node = 0; node < graph.node_count(); ++node) {
    bool comes_from_outside = false;
    bool comes_from_set = false;
    for (NodeId from : graph.predecessors(node)) {
      comes_from_outside = comes_from_outside || (left >> from & 1) != 0;
      comes_from_set = comes_from_set || (set >> from & 1) != 0;
    }
    const bool is_inside = (set >> node & 1) != 0;
    if (is_inside && comes_from_outside) return false;
    if (!is_inside && (comes_from_outside || comes_from_set)) left |= 1U << node;
  }
  return true;
}

/// By definition: the number of edges between groups on the way to (or from) a node.
Regions large_stages(const SmallGraph& small, std::uint32_t largest) {
  const FusionGroups groups = find_fusion_groups(small.graph);
  Regions out;
  for (const StageOrder order : {StageOrder::as_early_as_possible, StageOrder::as_late_as_possible})
    for (const Nodes& stage : find_stages(small.graph, groups, order))
      if (stage.size() > largest) out.insert(stage);
  return out;
}

Regions all_regions(const SmallGraph& small, std::uint32_t largest) {
  std::vector<std::uint32_t> sets;
  for (std::uint32_t set = 1; set < 1U << small.graph.node_count(); ++set)
    if (is_region(small, set)) sets.push_back(set);
  Regions out;
  for (std::uint32_t set : sets) {
    const bool is_maximal =
        std::ranges::none_of(sets, [&](std::uint32_t other) { return other != set && (other & set) == set; });
    if (static_cast<std::uint32_t>(std::popcount(set)) > largest && !is_maximal) continue;
    Nodes nodes;
    for (NodeId node = 0; node < small.graph.node_count(); ++node)
      if ((set >> node & 1) != 0) nodes.push_back(node);
    out.insert(nodes);
  }
  return out;
}

TEST(FusionStages, AreRegionsThatCanAllBeTaken) {
  std::mt19937 random(11);
  std::size_t taken = 0;
  for (int i = 0; i < 600; ++i) {
    const SmallGraph small = random_graph(random);
    const FusionGroups groups = find_fusion_groups(small.graph);
    for (const StageOrder order : {StageOrder::as_early_as_possible, StageOrder::as_late_as_possible}) {
      cover::Problem problem{.node_count = small.graph.node_count()};
      for (NodeId node = 0; node < small.graph.node_count(); ++node)
        for (NodeId before : small.graph.predecessors(node)) problem.edges.push_back({before, node});
      problem.uncovered_cost.assign(small.graph.node_count(), 10);
      for (const Nodes& stage : find_stages(small.graph, groups, order)) {
        std::uint32_t set = 0;
        for (NodeId node : stage) set |= 1U << node;
        EXPECT_TRUE(is_region(small, set)) << "graph " << i;
        problem.candidates.push_back(
            {.nodes = SmallVector<std::uint32_t, 8>(std::span<const NodeId>(stage))});
      }
      const auto solution = value_or_throw(cover::solve(problem));
      EXPECT_EQ(solution.chosen.size(), problem.candidates.size()) << "graph " << i;
      taken += solution.chosen.size();
    }
  }
  EXPECT_GT(taken, 500U);
}

/// Element-wise ops woven into each other, and now and then a product whose result comes back to them.
Graph woven_graph(std::uint32_t nodes, std::uint32_t every) {
  std::mt19937 random(3);
  GraphBuilder builder(op::op_facts());
  const ValueType type{ir::Dtype::f32, builder.shape({ir::Dim(64), ir::Dim(64)})};
  std::vector<ValueId> values{builder.input("x"), builder.input("y")};
  for (std::uint32_t i = 0; i < nodes; ++i) {
    const auto recent = [&] {
      return values[values.size() - 1 - random() % std::min<std::size_t>(values.size(), 8)];
    };
    const ValueId a = recent(), b = recent();
    values.push_back(builder.add(i % every == every - 1 ? "matmul" : "maximum", {a, b}, {}, type));
  }
  builder.set_sinks_as_outputs();
  return value_or_throw(std::move(builder).build());
}

TEST(RegionGrower, WhatIsListedFirstMakesAGoodTiling) {
  constexpr int ops = fixture::is_sanitized ? 200 : 600;
  const Graph graph = woven_graph(ops, 25);
  Target target = target_of({pattern_from("1:matmul")});
  target.sources.push_back(std::make_shared<RegionGrower>());
  const Tiling all = value_or_throw(tile(graph, target));
  target.limits.candidates = ops + 100;  // every op alone, and a few more
  const Tiling few = value_or_throw(tile(graph, target));
  EXPECT_FALSE(few.gaps.empty());
  EXPECT_TRUE(few.uncovered.empty());
  EXPECT_LE(few.cost, 1.5 * all.cost);
  target.limits = {};
  const Tiling none = value_or_throw(tile(graph, target, {.budget = std::chrono::milliseconds(0)}));
  EXPECT_TRUE(none.uncovered.empty());
  EXPECT_LE(none.cost, 2 * all.cost);
}

/// The price of a region, on a machine that is slow at first.
class SlowPrice {
 public:
  double operator()(const Graph&, std::span<const NodeId> nodes) {
    if (calls_++ < 300) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return 1 + 0.1 * static_cast<double>(nodes.size());
  }

 private:
  int calls_ = 0;
};

TEST(RegionGrower, ASlowMachineListsAndTakesTheSame) {
  const Graph graph = woven_graph(400, 25);
  const auto price = [](const Graph&, std::span<const NodeId> nodes) {
    return 1 + 0.1 * static_cast<double>(nodes.size());
  };
  const Target fast{.name = "fast",
                    .sources = {std::make_shared<RegionGrower>(RegionOptions{.cost = price})}};
  for (std::uint64_t work : {100'000U, 3'000'000U, 30'000'000U}) {
    const Target slow{.name = "slow",
                      .sources = {std::make_shared<RegionGrower>(RegionOptions{.cost = SlowPrice()})}};
    const Tiling expected = value_or_throw(tile(graph, fast, {.work = work}));
    const Tiling tiling = value_or_throw(tile(graph, slow, {.work = work}));
    EXPECT_EQ(tiles_of(graph, tiling), tiles_of(graph, expected)) << work;
    EXPECT_EQ(tiling.candidates, expected.candidates) << work;
    EXPECT_EQ(tiling.gaps, expected.gaps) << work;
    EXPECT_FALSE(expected.gaps.empty()) << work << " is not enough for all";
  }
}

TEST(RegionGrower, ListsExactlyTheRegionsOfRandomGraphs) {
  std::mt19937 random(7);
  std::size_t larger = 0;
  for (int i = 0; i < 600; ++i) {
    const SmallGraph small = random_graph(random);
    const std::uint32_t largest = 1 + random() % 4;
    const Listing found = grown(small.graph, {.largest = largest});
    Regions expected = all_regions(small, largest);
    expected.merge(large_stages(small, largest));
    EXPECT_EQ(found.regions, expected) << "graph " << i;
    EXPECT_EQ(found.count, found.regions.size()) << "graph " << i;
    EXPECT_TRUE(found.gaps.empty());
    for (const Nodes& region : found.regions) larger += region.size() > largest ? 1 : 0;
  }
  EXPECT_GT(larger, 200U) << "the graphs have maximal regions beyond the limit";
}

}  // namespace
