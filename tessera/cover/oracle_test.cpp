// The solver against oracles that share no code with it: brute force, and integer programming.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "tessera/cover/brute_force.h"
#include "tessera/cover/cover.h"
#include "tessera/cover/ilp_oracle.h"
#include "tessera/cover/instances.h"
#include "tests/support/repeats.h"

using namespace tessera;
using namespace tessera::cover;

namespace {

/// Other random problems than the usual ones: TESSERA_SEED=1000000 tessera_cover_tests
std::uint64_t first_seed() {
  const char* given = std::getenv("TESSERA_SEED");
  return given == nullptr ? 0 : std::strtoull(given, nullptr, 10);
}

/// Solves with both solvers and expects the cost `best` of both.
void expect_cost(const Problem& problem, double best, std::uint64_t seed) {
  for (std::uint32_t frontier_limit : {8192U, 0U}) {
    const auto solution = solve(problem, {.frontier_limit = frontier_limit});
    ASSERT_TRUE(solution.ok()) << solution.error().to_text();
    EXPECT_EQ(explain_invalid(problem, *solution), "") << "seed " << seed;
    EXPECT_TRUE(solution->optimal) << "seed " << seed;
    EXPECT_NEAR(solution->cost, best, 1e-9 * (1 + best)) << "seed " << seed << ", limit " << frontier_limit;
  }
}

/// What the cover would cost if cycles were allowed.
double cost_with_cycles(Problem problem) {
  problem.edges.clear();
  return value_or_throw(solve(problem)).cost;
}

RandomShape random_shape(Random& random, std::uint32_t most_nodes) {
  RandomShape shape;
  shape.nodes = random.between(1, most_nodes);
  shape.candidates = random.between(0, 3 * shape.nodes);
  shape.edge_percent = random.between(5, 50);
  shape.largest = random.between(2, 6);
  shape.single_percent = random.between(0, 100);
  shape.costs = static_cast<CostKind>(random.below(3));
  shape.shuffled = random.chance(50);
  return shape;
}

TEST(CoverOracle, BruteForceAgreesOnRandomProblems) {
  for (std::uint64_t seed = first_seed(); seed < first_seed() + fixture::repeats(4000U); ++seed) {
    Random random(seed);
    const Problem problem = random_problem(random_shape(random, 12), seed);
    expect_cost(problem, brute_force_cost(problem), seed);
    if (HasFailure()) return;
  }
}

TEST(CoverOracle, BruteForceAgreesOnSixteenNodes) {
  for (std::uint64_t seed = first_seed(); seed < first_seed() + fixture::repeats(200U); ++seed) {
    Random random(seed);
    RandomShape shape = random_shape(random, 16);
    shape.nodes = 16;
    shape.candidates = 24;
    const Problem problem = random_problem(shape, seed);
    expect_cost(problem, brute_force_cost(problem), seed);
    if (HasFailure()) return;
  }
}

/// Small tiles over a graph with many crossing edges, cheap enough that all would be chosen if cycles were
/// allowed.
Problem tangled_problem(std::uint64_t seed) {
  Random random(seed);
  Problem problem = random_problem({.nodes = random.between(6, 12),
                                    .candidates = random.between(6, 20),
                                    .edge_percent = random.between(15, 40),
                                    .largest = random.between(2, 4),
                                    .single_percent = 0,
                                    .shuffled = random.chance(50)},
                                   seed);
  for (Candidate& candidate : problem.candidates) candidate.cost = 1 + 0.25 * random.below(4);
  problem.uncovered_cost.assign(problem.node_count, 3);
  return problem;
}

TEST(CoverOracle, BruteForceAgreesWhereCyclesDecide) {
  std::uint64_t decided_by_cycles = 0;
  const std::uint64_t count = fixture::repeats(3000U);
  for (std::uint64_t seed = first_seed(); seed < first_seed() + count; ++seed) {
    const Problem problem = tangled_problem(seed);
    const double best = brute_force_cost(problem);
    if (cost_with_cycles(problem) < best - 1e-9) ++decided_by_cycles;
    expect_cost(problem, best, seed);
    if (HasFailure()) return;
  }
  EXPECT_GT(decided_by_cycles, count / 10);
}

/// A ring (see ring_problem) of `tiles` tiles with random nodes and candidates added around it.
Problem ring_with_noise(std::uint32_t tiles, std::uint64_t seed) {
  Random random(seed);
  Problem problem = ring_problem(tiles);
  const std::uint32_t noise = random.between(0, 12 - 2 * tiles);
  for (std::uint32_t i = 0; i < noise; ++i) {
    const std::uint32_t node = problem.node_count++;
    problem.edges.push_back({random.below(node), node});
    problem.uncovered_cost.push_back(1);
  }
  for (const Edge edge : std::vector<Edge>(problem.edges))
    if (random.chance(40))
      problem.candidates.push_back(
          {.nodes = {std::min(edge.producer, edge.consumer), std::max(edge.producer, edge.consumer)},
           .cost = 0.5 + 0.5 * random.below(3)});
  return problem;
}

TEST(CoverOracle, BruteForceAgreesOnCyclesOfThreeAndMoreTiles) {
  for (std::uint64_t seed = first_seed(); seed < first_seed() + fixture::repeats(1000U); ++seed) {
    const Problem problem = ring_with_noise(2 + seed % 5, seed);
    expect_cost(problem, brute_force_cost(problem), seed);
    if (HasFailure()) return;
  }
}

/// Edges that lead a few nodes ahead, as in a real model, so that integer programming can cope as well.
Problem local_problem(std::uint64_t seed) {
  Random random(seed);
  RandomShape shape = random_shape(random, 1);
  shape.nodes = random.between(20, 300);
  shape.candidates = random.between(shape.nodes / 2, 2 * shape.nodes);
  shape.edge_percent = random.between(10, 40);
  shape.reach = random.between(3, 8);
  shape.largest = random.between(3, 7);
  return random_problem(shape, seed);
}

void expect_ilp_agrees(IlpOracle::Program program, const char* name, std::uint64_t first,
                       std::uint64_t count) {
  const auto oracle = IlpOracle::find(program);
  if (!oracle) GTEST_SKIP() << name << " is not installed";
  std::uint64_t compared = 0;
  std::uint64_t decided_by_cycles = 0;
  for (std::uint64_t seed = first_seed() + first; seed < first_seed() + first + count; ++seed) {
    const Problem problem = local_problem(seed);
    const auto best = oracle->least_cost(problem, 5);
    if (!best) continue;
    ++compared;
    const Solution solution = value_or_throw(solve(problem, {.budget = std::chrono::seconds(2)}));
    EXPECT_EQ(explain_invalid(problem, solution), "") << "seed " << seed;
    EXPECT_LE(solution.bound, *best + 1e-6) << "seed " << seed;
    EXPECT_GE(solution.cost, *best - 1e-6) << "seed " << seed;
    if (solution.optimal) {
      EXPECT_NEAR(solution.cost, *best, 1e-6) << "seed " << seed;
    }
    if (cost_with_cycles(problem) < *best - 1e-6) ++decided_by_cycles;
  }
  EXPECT_GT(compared, count * 9 / 10);
  EXPECT_GT(decided_by_cycles, count / 10);
}

TEST(CoverOracle, GlpkAgreesOnHundredsOfNodes) {
  expect_ilp_agrees(IlpOracle::Program::glpsol, "glpsol", 0, fixture::repeats(120U));
}

TEST(CoverOracle, CbcAgreesOnHundredsOfNodes) {
  expect_ilp_agrees(IlpOracle::Program::cbc, "cbc", 1000, fixture::repeats(25U));
}

TEST(CoverOracle, BothSolversAgreeWhereNoOracleCan) {
  for (std::uint64_t seed = first_seed(); seed < first_seed() + fixture::repeats(60U); ++seed) {
    const Problem problem = random_problem({.nodes = 60,
                                            .candidates = 80,
                                            .edge_percent = 6,
                                            .largest = 5,
                                            .single_percent = 60,
                                            .costs = CostKind::whole,
                                            .shuffled = seed % 2 == 0},
                                           seed);
    const Solution walked = value_or_throw(solve(problem, {.frontier_limit = 200'000}));
    const Solution searched = value_or_throw(solve(problem, {.frontier_limit = 0}));
    EXPECT_TRUE(walked.optimal) << "seed " << seed;
    EXPECT_TRUE(searched.optimal) << "seed " << seed;
    EXPECT_EQ(walked.cost, searched.cost) << "seed " << seed;
  }
}

}  // namespace
