#include "tessera/cover/order.h"

#include <gtest/gtest.h>

#include "tessera/cover/instances.h"

using namespace tessera;
using namespace tessera::cover;

namespace {

using Nodes = std::vector<std::uint32_t>;

void expect_topological(const Precedence& graph, const Nodes& order) {
  ASSERT_EQ(order.size(), graph.size());
  const Nodes position = inverse(order);
  for (std::uint32_t node = 0; node < graph.size(); ++node)
    for (std::uint32_t input : graph.inputs[node]) EXPECT_LT(position[input], position[node]);
}

std::vector<NodeSet> candidate_sets(const Problem& problem) {
  std::vector<NodeSet> sets;
  for (const Candidate& candidate : problem.candidates) sets.push_back(candidate.nodes);
  return sets;
}

TEST(Order, PutsProducersFirst) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Problem problem = random_problem({.nodes = 40, .candidates = 60, .shuffled = true}, seed);
    const Precedence graph = make_precedence(problem.node_count, problem.edges);
    expect_topological(graph, *number_order(graph));
    expect_topological(graph, chain_order(graph));
    expect_topological(graph, demand_order(graph));
    expect_topological(graph, narrow_order(graph, candidate_sets(problem)));
    Effort unlimited;
    expect_topological(graph, *choose_order(graph, candidate_sets(problem), unlimited));
  }
}

TEST(Order, NamesACycle) {
  const std::vector<Edge> edges{{0, 1}, {1, 2}, {2, 3}, {3, 1}, {3, 4}};
  const auto order = number_order(make_precedence(5, edges));
  ASSERT_FALSE(order.ok());
  EXPECT_EQ(order.error().code(), ErrorCode::cycle);
  EXPECT_EQ(order.error().message(), "the edges form a cycle: 1 -> 2 -> 3 -> 1");
}

TEST(Order, NarrowKeepsSetsTogetherThatNoEdgeKeepsTogether) {
  // A chain of overlapping pairs over nodes with shuffled names and no edges at all.
  const std::uint32_t count = 200;
  std::vector<Nodes> pairs;
  for (std::uint32_t i = 0; i + 1 < count; ++i) pairs.push_back({i * 77 % count, (i + 1) * 77 % count});
  const std::vector<NodeSet> sets(pairs.begin(), pairs.end());
  const Precedence graph = make_precedence(count, {});
  EXPECT_GT(frontier_size(*number_order(graph), sets), std::uint64_t{1} << 24);
  Effort unlimited;
  EXPECT_LT(frontier_size(*choose_order(graph, sets, unlimited), sets), 2 * count);
}

}  // namespace
