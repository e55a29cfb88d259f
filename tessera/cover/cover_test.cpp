#include "tessera/cover/cover.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "tessera/cover/brute_force.h"
#include "tessera/cover/instances.h"

using namespace tessera;
using namespace tessera::cover;

namespace {

using Nodes = std::vector<std::uint32_t>;

Problem small_chain() {
  return {.node_count = 3,
          .edges = {{0, 1}, {1, 2}},
          .candidates = {{.nodes = {0, 1}, .cost = 1}, {.nodes = {2}, .cost = 1}},
          .uncovered_cost = {4, 4, 4}};
}

Solution solved(const Problem& problem, const Options& options = {}) {
  Solution solution = value_or_throw(solve(problem, options));
  EXPECT_EQ(explain_invalid(problem, solution), "");
  return solution;
}

std::string message(const Problem& problem, ErrorCode code = ErrorCode::invalid_argument) {
  const auto result = solve(problem);
  if (result.ok()) return "no error";
  EXPECT_EQ(result.error().code(), code);
  return result.error().message();
}

TEST(Cover, OfNothingIsNothing) {
  const Solution solution = solved({});
  EXPECT_TRUE(solution.order.empty());
  EXPECT_EQ(solution.cost, 0);
  EXPECT_TRUE(solution.optimal);
}

TEST(Cover, WithoutCandidatesLeavesEverythingUncovered) {
  Problem problem = small_chain();
  problem.candidates.clear();
  const Solution solution = solved(problem);
  EXPECT_EQ(solution.uncovered, (Nodes{0, 1, 2}));
  EXPECT_EQ(solution.cost, 12);
}

TEST(Cover, ListsTilesInAnOrderTheyCanRunIn) {
  const Solution solution = solved(small_chain());
  EXPECT_EQ(solution.chosen, (Nodes{0, 1}));
  EXPECT_EQ(solution.order, (std::vector<Step>{{Step::Kind::tile, 0}, {Step::Kind::tile, 1}}));
  EXPECT_EQ(solution.cost, 2);
  EXPECT_EQ(solution.gap(), 0);
}

TEST(Cover, LeavesANodeUncoveredWhenThatIsCheaper) {
  Problem problem = small_chain();
  problem.uncovered_cost[2] = 0.5;
  const Solution solution = solved(problem);
  EXPECT_EQ(solution.uncovered, (Nodes{2}));
  EXPECT_EQ(solution.cost, 1.5);
}

TEST(Cover, CoversANodeAloneWhenThatCostsTheSame) {
  Problem problem = small_chain();
  problem.uncovered_cost[2] = 1;
  EXPECT_TRUE(solved(problem).uncovered.empty());
}

TEST(Cover, NeverChoosesACandidateThatIsNotConvex) {
  const Problem problem{.node_count = 3,
                        .edges = {{0, 1}, {1, 2}},
                        .candidates = {{.nodes = {0, 2}, .cost = 0}},
                        .uncovered_cost = {1, 1, 1}};
  for (std::uint32_t frontier_limit : {8192U, 0U}) {
    const Solution solution = solved(problem, {.frontier_limit = frontier_limit});
    EXPECT_TRUE(solution.chosen.empty());
    EXPECT_EQ(solution.cost, 3);
  }
}

TEST(Cover, OfTwoCandidatesOverTheSameNodesTakesTheCheaper) {
  Problem problem = small_chain();
  problem.candidates.push_back({.nodes = {0, 1}, .cost = 0.5});
  problem.candidates.push_back({.nodes = {2}, .cost = 0.5});
  EXPECT_EQ(solved(problem).chosen, (Nodes{2, 3}));
}

TEST(Cover, DoesNotDependOnTheOrderOfCandidatesAndEdges) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Problem problem = random_problem({.nodes = 30, .candidates = 60, .costs = CostKind::whole}, seed);
    Problem reversed = problem;
    std::reverse(reversed.candidates.begin(), reversed.candidates.end());
    std::reverse(reversed.edges.begin(), reversed.edges.end());
    std::set<Nodes> tiles;
    std::set<Nodes> reversed_tiles;
    for (std::uint32_t i : solved(problem).chosen)
      tiles.insert({problem.candidates[i].nodes.begin(), problem.candidates[i].nodes.end()});
    for (std::uint32_t i : solved(reversed).chosen)
      reversed_tiles.insert({reversed.candidates[i].nodes.begin(), reversed.candidates[i].nodes.end()});
    EXPECT_EQ(tiles, reversed_tiles) << "seed " << seed;
  }
}

TEST(Cover, AnEnormousUncoveredCostDoesNotDrownTheOthers) {
  for (double enormous : {1e6, 1e18, 1e200}) {
    Problem problem = chain_problem(40, 4);
    problem.uncovered_cost.assign(40, enormous);
    Problem usual = chain_problem(40, 4);
    EXPECT_EQ(solved(problem).cost, solved(usual).cost) << enormous;
  }
}

TEST(Cover, CountsUncoveredNodesExactlyAmongAMillion) {
  // Every second node can be covered by its left or its right neighbour's tile, never by both.
  Problem problem;
  problem.node_count = 999'999;
  for (std::uint32_t node = 0; node + 1 < problem.node_count; ++node)
    problem.edges.push_back({node, node + 1});
  for (std::uint32_t first = 0; first + 2 < problem.node_count; first += 3) {
    problem.candidates.push_back({.nodes = {first, first + 1}});
    problem.candidates.push_back({.nodes = {first + 1, first + 2}});
  }
  problem.uncovered_cost.assign(problem.node_count, problem.node_count + 1.0);
  const Solution solution = value_or_throw(solve(problem));
  EXPECT_EQ(solution.chosen.size(), 333'333U);
  EXPECT_EQ(solution.uncovered.size(), 333'333U);
  EXPECT_EQ(solution.cost, 333'333.0 + 333'333.0 * 1'000'000.0);
  EXPECT_TRUE(solution.optimal);
}

TEST(Cover, OneNodeMayShareATileWithAnyOfVeryMany) {
  for (std::uint32_t leaves : {50U, 100U, 200U, 400U, 1000U}) {
    Problem problem;
    problem.node_count = leaves + 1;
    for (std::uint32_t leaf = 1; leaf <= leaves; ++leaf) {
      problem.edges.push_back({0, leaf});
      problem.candidates.push_back({.nodes = {0, leaf}, .cost = leaf == 40 ? 0.5 : 1});
    }
    problem.uncovered_cost.assign(problem.node_count, 1);
    const Solution solution = solved(problem);
    EXPECT_TRUE(solution.optimal);
    EXPECT_EQ(solution.chosen, (Nodes{39})) << leaves;
  }
}

/// Pairs of neighbours in a square grid whose edges lead right and down: pairs form cycles of many lengths.
Problem grid_problem(std::uint32_t side) {
  Problem problem;
  problem.node_count = side * side;
  for (std::uint32_t node = 0; node < problem.node_count; ++node)
    for (std::uint32_t other : {node + 1, node + side}) {
      if (other >= problem.node_count || (other == node + 1 && other % side == 0)) continue;
      problem.edges.push_back({node, other});
      problem.candidates.push_back({.nodes = {node, other}, .cost = 1 + 0.1 * ((node * 5 + other * 11) % 7)});
    }
  problem.uncovered_cost.assign(problem.node_count, 1);
  return problem;
}

TEST(Cover, BothSolversAgreeOnAGrid) {
  for (std::uint32_t side : {3U, 5U, 7U}) {
    const Solution walked = solved(grid_problem(side), {.frontier_limit = 1'000'000});
    const Solution searched = solved(grid_problem(side), {.frontier_limit = 0});
    EXPECT_TRUE(walked.optimal);
    EXPECT_TRUE(searched.optimal);
    EXPECT_NEAR(walked.cost, searched.cost, 1e-9);
  }
}

TEST(CoverLimits, APieceTooLargeToWatchAllCyclesStillGetsAValidTiling) {
  const Solution solution = solved(grid_problem(66), {.work = 300'000'000});
  EXPECT_FALSE(solution.optimal);
  EXPECT_GT(solution.bound, 0);
  EXPECT_LT(solution.bound, solution.cost);
}

TEST(Cover, RepeatedBlocksAreSolvedOnceEvenIfTilesReachAcrossThem) {
  const Solution few = solved(transformer_problem({.layers = 8, .regions_per_node = 8}));
  const Solution many = solved(transformer_problem({.layers = 40, .regions_per_node = 8}));
  EXPECT_TRUE(few.optimal);
  EXPECT_TRUE(many.optimal);
  EXPECT_EQ(many.states(), few.states());
}

/// `kinds` beside each other, each `count` times, their nodes dealt out in turns.
Problem interleaved(const std::vector<Problem>& kinds, std::uint32_t count) {
  Problem out;
  std::vector<Nodes> numbers(kinds.size() * count);
  for (std::uint32_t i = 0; i < 64; ++i)
    for (std::size_t part = 0; part < numbers.size(); ++part)
      if (i < kinds[part / count].node_count) {
        numbers[part].push_back(out.node_count++);
        out.uncovered_cost.push_back(kinds[part / count].uncovered_cost[i]);
      }
  for (std::size_t part = 0; part < numbers.size(); ++part) {
    for (const Edge& edge : kinds[part / count].edges)
      out.edges.push_back({numbers[part][edge.producer], numbers[part][edge.consumer]});
    for (Candidate candidate : kinds[part / count].candidates) {
      for (std::uint32_t& node : candidate.nodes) node = numbers[part][node];
      out.candidates.push_back(std::move(candidate));
    }
  }
  return out;
}

TEST(Cover, CopiesTakeTheAnswerOfTheFirst) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    RandomShape shape{.costs = seed % 2 == 0 ? CostKind::whole : CostKind::fraction};
    shape.shuffled = seed % 3 == 0;
    const std::vector<Problem> kinds{random_problem(shape, seed), random_problem(shape, seed + 1000)};
    const Problem problem = interleaved(kinds, 4);
    const Solution solution = solved(problem);
    EXPECT_TRUE(solution.optimal);
    const double each = solved(kinds[0]).cost + solved(kinds[1]).cost;
    EXPECT_NEAR(solution.cost, 4 * each, 1e-9 * each) << seed;
    EXPECT_EQ(solution.bound, solution.cost);
    for (const Subproblem& part : solution.subproblems) {
      EXPECT_EQ(solution.subproblems[part.same_as].same_as, part.same_as);
      EXPECT_EQ(solution.subproblems[part.same_as].cost, part.cost);
      EXPECT_EQ(solution.subproblems[part.same_as].nodes.size(), part.nodes.size());
    }
  }
}

TEST(Cover, CopiesWithoutTimeHaveABound) {
  const Problem one = dense_problem(15, CostKind::fraction, 7);
  const Solution solution = solved(interleaved({one}, 3), {.budget = std::chrono::milliseconds(0)});
  EXPECT_FALSE(solution.optimal);
  EXPECT_GT(solution.bound, 0);
  EXPECT_LE(solution.bound, 3 * solved(one).cost * (1 + 1e-9));
  EXPECT_LT(solution.bound, solution.cost);
}

TEST(Cover, NearlyEqualPartsAreNoCopies) {
  Problem problem = copies_problem(3);
  problem.candidates[0].cost = 0.25;
  problem.uncovered_cost[5] = 0.125;
  const Solution solution = solved(problem);
  EXPECT_EQ(solution.cost, brute_force_cost(problem));
}

TEST(CoverErrors, ACycleInOneOfTheCopiesIsNamedByItsOwnNodes) {
  Problem problem = interleaved({small_chain()}, 3);
  problem.edges.push_back({8, 2});
  EXPECT_EQ(message(problem, ErrorCode::cycle), "the edges form a cycle: 2 -> 5 -> 8 -> 2");
  Problem all = small_chain();
  all.edges.push_back({2, 0});
  EXPECT_EQ(message(interleaved({all}, 2), ErrorCode::cycle), "the edges form a cycle: 0 -> 2 -> 4 -> 0");
}

TEST(Cover, BothSolversAgreeOnATransformer) {
  const Problem problem = transformer_problem({.layers = 3, .regions_per_node = 8});
  const Solution walked = solved(problem);
  const Solution searched = solved(problem, {.frontier_limit = 0});
  EXPECT_EQ(walked.subproblems[0].method, Method::frontier);
  EXPECT_EQ(searched.subproblems[0].method, Method::search);
  EXPECT_TRUE(walked.optimal);
  EXPECT_TRUE(searched.optimal);
  EXPECT_NEAR(walked.cost, searched.cost, 1e-9);
}

TEST(CoverLimits, ACutSearchReturnsAValidTilingAndABound) {
  const Problem problem = dense_problem(10, CostKind::unit, 1);
  const Solution best = solved(problem);
  ASSERT_TRUE(best.optimal);
  double last_cost = std::numeric_limits<double>::infinity();
  for (std::uint64_t limit : {1U, 30U, 300U, 1000U, 1'000'000U}) {
    const Solution cut = solved(problem, {.state_limit = limit});
    EXPECT_LE(cut.bound, best.cost) << limit;
    EXPECT_GE(cut.cost, best.cost) << limit;
    EXPECT_LE(cut.cost, last_cost) << limit;
    EXPECT_EQ(cut.optimal, cut.cost == cut.bound) << limit;
    last_cost = cut.cost;
  }
  EXPECT_EQ(last_cost, best.cost);
}

TEST(CoverLimits, ABudgetReturnsAValidTilingAndABound) {
  const Problem problem = dense_problem(10, CostKind::unit, 3);
  const Solution best = solved(problem);
  ASSERT_TRUE(best.optimal);
  for (int budget : {0, 1, 3, 10, 30}) {
    const Solution cut = solved(problem, {.budget = std::chrono::milliseconds(budget)});
    EXPECT_LE(cut.bound, best.cost) << budget;
    EXPECT_GE(cut.cost, best.cost) << budget;
    EXPECT_LE(cut.gap(), 1) << budget;
  }
}

TEST(CoverLimits, SoMuchWorkFindsTheSameTilingEachTime) {
  const Problem problem = dense_problem(10, CostKind::unit, 3);
  const Solution best = solved(problem);
  ASSERT_TRUE(best.optimal);
  std::size_t cut_short = 0;
  for (std::uint64_t work : {0U, 10'000U, 100'000U, 1'000'000U, 3'000'000U, 1'000'000'000U}) {
    const Solution cut = solved(problem, {.work = work});
    const Solution again = solved(problem, {.work = work});
    EXPECT_EQ(cut.order, again.order) << work;
    EXPECT_EQ(cut.bound, again.bound) << work;
    EXPECT_EQ(cut.states(), again.states()) << work;
    EXPECT_LE(cut.bound, best.cost) << work;
    EXPECT_GE(cut.cost, best.cost) << work;
    cut_short += cut.optimal ? 0 : 1;
  }
  EXPECT_GE(cut_short, 3U);
  EXPECT_EQ(solved(problem, {.work = 1'000'000'000}).cost, best.cost);
}

TEST(CoverLimits, WithoutTimeTheAnswerIsGreedyButValid) {
  const Problem problem = transformer_problem({.layers = 2});
  const Solution quick = solved(problem, {.budget = std::chrono::milliseconds(0)});
  const Solution best = solved(problem);
  EXPECT_EQ(quick.subproblems[0].method, Method::greedy);
  EXPECT_FALSE(quick.optimal);
  EXPECT_GT(quick.bound, 0);
  EXPECT_LE(quick.bound, best.cost);
  EXPECT_GE(quick.cost, best.cost);
}

TEST(CoverErrors, NodesOutOfRange) {
  Problem problem = small_chain();
  problem.edges.push_back({1, 3});
  EXPECT_EQ(message(problem), "edge 2 names node 3, expected one below 3");
  problem = small_chain();
  problem.candidates.push_back({.nodes = {1, 7}});
  EXPECT_EQ(message(problem), "candidate 2 names node 7, expected one below 3");
}

TEST(CoverErrors, CandidatesThatAreNoSets) {
  Problem problem = small_chain();
  problem.candidates[0].nodes = {};
  EXPECT_EQ(message(problem), "candidate 0 has no nodes");
  problem.candidates[0].nodes = {1, 0};
  EXPECT_EQ(message(problem), "nodes of candidate 0 are not ascending: 1 before 0");
  problem.candidates[0].nodes = {1, 1};
  EXPECT_EQ(message(problem), "nodes of candidate 0 are not ascending: 1 before 1");
}

TEST(CoverErrors, CostsThatAreNoCosts) {
  for (double wrong : {-1.0, std::numeric_limits<double>::infinity(), std::nan("")}) {
    Problem problem = small_chain();
    problem.candidates[1].cost = wrong;
    EXPECT_TRUE(message(problem).starts_with("cost of candidate 1 is ")) << wrong;
    problem = small_chain();
    problem.uncovered_cost[2] = wrong;
    EXPECT_TRUE(message(problem).starts_with("uncovered_cost of node 2 is ")) << wrong;
  }
  Problem problem = small_chain();
  problem.uncovered_cost = {1.7e308, 1.7e308, 1};
  EXPECT_EQ(message(problem), "the costs add up to more than a double can hold");
}

TEST(CoverErrors, AListOfTheWrongLength) {
  Problem problem = small_chain();
  problem.uncovered_cost.pop_back();
  EXPECT_EQ(message(problem), "uncovered_cost has 2 entries, expected one for each of the 3 nodes");
}

TEST(CoverErrors, EdgesThatFormACycle) {
  Problem problem = small_chain();
  problem.edges.push_back({2, 0});
  EXPECT_EQ(message(problem, ErrorCode::cycle), "the edges form a cycle: 0 -> 1 -> 2 -> 0");
  problem.edges.back() = {1, 1};
  EXPECT_EQ(message(problem, ErrorCode::cycle), "edge 2 leads from node 1 to itself");
}

TEST(CoverErrors, MoreNodesThanCanBeNumbered) {
  Problem problem;
  problem.node_count = std::numeric_limits<std::uint32_t>::max();
  EXPECT_TRUE(message(problem, ErrorCode::limit).starts_with("a problem of 4294967295 nodes"));
}

}  // namespace
