// The rows of TRAPS.md, section T, that concern the cover.
#include <gtest/gtest.h>

#include "tessera/cover/brute_force.h"
#include "tessera/cover/cover.h"
#include "tessera/cover/instances.h"

using namespace tessera;
using namespace tessera::cover;

namespace {

using Nodes = std::vector<std::uint32_t>;

/// A chain of nodes with the seed's objective: most covered first, then fewest tiles.
Problem coverage_chain(std::uint32_t nodes, const std::vector<Nodes>& candidates) {
  Problem problem;
  problem.node_count = nodes;
  for (std::uint32_t node = 0; node + 1 < nodes; ++node) problem.edges.push_back({node, node + 1});
  for (const Nodes& candidate : candidates)
    problem.candidates.push_back({.nodes = {candidate.begin(), candidate.end()}, .cost = 1});
  problem.uncovered_cost.assign(nodes, nodes + 1.0);
  return problem;
}

Solution solved_at_best(const Problem& problem, const Options& options = {}) {
  Solution solution = value_or_throw(solve(problem, options));
  EXPECT_EQ(explain_invalid(problem, solution), "");
  EXPECT_TRUE(solution.optimal);
  return solution;
}

TEST(Cover, Trap_T1_FullCoverageIsNoReasonToStop) {
  const Problem problem = coverage_chain(4, {{0}, {0, 1}, {1, 2, 3}, {2}, {3}});
  const Solution solution = solved_at_best(problem);
  EXPECT_EQ(solution.chosen, (Nodes{0, 2}));
  EXPECT_TRUE(solution.uncovered.empty());
  EXPECT_EQ(solution.cost, 2);
}

TEST(Cover, Trap_T7_TwoConvexTilesMayFormACycle) {
  // p=0 and q=1 both lead to add=2 and mul=3.
  const Problem problem{.node_count = 4,
                        .edges = {{0, 2}, {1, 3}, {0, 3}, {1, 2}},
                        .candidates = {{.nodes = {0, 2}}, {.nodes = {1, 3}}},
                        .uncovered_cost = {5, 5, 5, 5}};
  for (std::uint32_t frontier_limit : {8192U, 0U}) {
    const Solution solution = solved_at_best(problem, {.frontier_limit = frontier_limit});
    EXPECT_EQ(solution.chosen.size(), 1U);
    EXPECT_EQ(solution.cost, 11);
  }
}

TEST(Cover, Trap_T7_LongerCyclesCountToo) {
  for (std::uint32_t tiles : {3U, 4U, 7U, 20U, 100U, 200U}) {
    const Problem problem = ring_problem(tiles);
    for (std::uint32_t frontier_limit : {8192U, 0U}) {
      const Solution solution = solved_at_best(problem, {.frontier_limit = frontier_limit});
      EXPECT_EQ(solution.chosen.size(), tiles - 1);
      EXPECT_EQ(solution.cost, tiles + 1);
    }
  }
}

TEST(Cover, Trap_T10_CopiesAreSolvedOnce) {
  const Problem problem = copies_problem(1000);
  const Solution solution = solved_at_best(problem);
  EXPECT_EQ(solution.subproblems.size(), 1000U);
  EXPECT_EQ(solution.distinct_subproblems(), 1U);
  EXPECT_EQ(solution.cost, 2000);
  EXPECT_TRUE(solution.uncovered.empty());
  EXPECT_EQ(solution.states(), solved_at_best(copies_problem(1)).states());
}

TEST(Cover, Trap_T12_ALongChainNeedsNoRecursion) {
  const Problem problem = chain_problem(100'000, 6);
  const Solution solution = solved_at_best(problem);
  EXPECT_EQ(solution.subproblems.size(), 1U);
  // What repeats is not expanded again: a chain twelve times as short meets as many states.
  EXPECT_LT(solution.states(), 2 * solved_at_best(chain_problem(8'400, 6)).states());
}

TEST(Cover, Trap_T12_ALongChainIsNoTroubleForTheBoundedSearch) {
  const Problem problem = chain_problem(20'000, 3);
  EXPECT_EQ(solved_at_best(problem, {.frontier_limit = 0}).cost, solved_at_best(problem).cost);
}

TEST(Cover, Trap_T13_TheSameProblemGivesTheSameTiling) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const Problem problem = random_problem(
        {.nodes = 40, .candidates = 120, .edge_percent = 10, .costs = CostKind::unit, .shuffled = true},
        seed);
    const Solution once = solved_at_best(problem);
    const Solution again = solved_at_best(problem);
    EXPECT_EQ(once.chosen, again.chosen);
    EXPECT_EQ(once.uncovered, again.uncovered);
    EXPECT_EQ(once.order, again.order);
  }
}

TEST(Cover, Trap_T14_TheSeedsExample) {
  // mm -> relu -> mm -> relu with {mm}, {relu}, {mm -> relu}, in the seed's order.
  const Problem problem = coverage_chain(4, {{0, 1}, {2, 3}, {0}, {1}, {2}, {3}});
  const Solution solution = solved_at_best(problem);
  EXPECT_EQ(solution.chosen, (Nodes{0, 1}));
  EXPECT_EQ(solution.order, (std::vector<Step>{{Step::Kind::tile, 0}, {Step::Kind::tile, 1}}));
}

}  // namespace
