// How long the cover takes, by itself: no patterns, no matching.
//
//   cover_bench                          the structured instances and the dense ones at several densities
//   cover_bench cbc SEEDS SECONDS        the dense ones against CBC, at most SECONDS an instance
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tessera/cover/cover.h"
#include "tessera/cover/ilp_oracle.h"
#include "tessera/cover/instances.h"

using namespace tessera;
using namespace tessera::cover;

namespace {

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// The median of nine solves after a first that does not count.
void measure(const char* name, const Problem& problem) {
  std::vector<double> times;
  Solution solution;
  for (int i = 0; i < 10; ++i) {
    const auto start = std::chrono::steady_clock::now();
    solution = value_or_throw(solve(problem));
    if (i > 0) times.push_back(milliseconds_since(start));
  }
  std::printf("%-28s %8u nodes %8zu candidates %9.2f ms  %s  %zu subproblems, %zu solved, %llu states\n",
              name, problem.node_count, problem.candidates.size(), median(times),
              solution.optimal ? "optimal" : "NOT PROVEN", solution.subproblems.size(),
              solution.distinct_subproblems(), static_cast<unsigned long long>(solution.states()));
  std::fflush(stdout);
}

void measure_dense(std::uint32_t edge_percent, CostKind costs, const char* kind) {
  constexpr std::uint64_t seeds = 100;
  std::vector<double> times;
  std::uint32_t proven = 0;
  double largest_gap = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const Problem problem = dense_problem(edge_percent, costs, seed);
    const auto start = std::chrono::steady_clock::now();
    const Solution solution = value_or_throw(solve(problem, {.budget = std::chrono::seconds(1)}));
    times.push_back(milliseconds_since(start));
    proven += solution.optimal ? 1 : 0;
    largest_gap = std::max(largest_gap, solution.gap());
  }
  std::sort(times.begin(), times.end());
  std::printf(
      "dense, %2u%% edges, %-8s costs  %3u of %llu proven in 1 s, median %7.1f ms, 90%% %7.1f ms, "
      "worst %7.1f ms, largest gap %.3f\n",
      edge_percent, kind, proven, static_cast<unsigned long long>(seeds), times[seeds / 2],
      times[seeds * 9 / 10], times.back(), largest_gap);
  std::fflush(stdout);
}

int compare_with_cbc(std::uint64_t seeds, int seconds) {
  const auto cbc = IlpOracle::find(IlpOracle::Program::cbc);
  if (!cbc) return std::puts("cbc is not installed"), 1;
  std::vector<double> ours;
  std::vector<double> theirs;
  std::uint32_t unsolved = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const Problem problem = dense_problem(15, seed % 2 == 0 ? CostKind::unit : CostKind::fraction, seed);
    auto start = std::chrono::steady_clock::now();
    const Solution solution = value_or_throw(solve(problem, {.budget = std::chrono::seconds(1)}));
    ours.push_back(milliseconds_since(start));
    start = std::chrono::steady_clock::now();
    const auto cost = cbc->least_cost(problem, seconds);
    theirs.push_back(milliseconds_since(start));
    unsolved += cost ? 0 : 1;
    std::printf("seed %3llu: cover %.3f in %.1f ms, cbc %.3f in %.1f ms\n",
                static_cast<unsigned long long>(seed), solution.cost, ours.back(), cost.value_or(-1),
                theirs.back());
    std::fflush(stdout);
  }
  std::printf("median: cover %.1f ms, cbc %.1f ms (%u not solved in %d s)\n", median(ours), median(theirs),
              unsolved, seconds);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 4 && std::strcmp(argv[1], "cbc") == 0)
    return compare_with_cbc(static_cast<std::uint64_t>(std::atoi(argv[2])), std::atoi(argv[3]));
  measure("transformer, 12 layers", transformer_problem({.layers = 12, .regions_per_node = 10}));
  measure("  with more regions", transformer_problem({.layers = 12, .regions_per_node = 20}));
  measure("transformer, 100 layers", transformer_problem({.layers = 100, .regions_per_node = 10}));
  measure("  with more regions", transformer_problem({.layers = 100, .regions_per_node = 20}));
  measure("chain", chain_problem(100'000, 6));
  measure("  twice as long", chain_problem(200'000, 6));
  measure("1,000 copies", copies_problem(1000));
  measure("  ten times as many", copies_problem(10'000));
  for (std::uint32_t edge_percent : {5U, 10U, 15U, 20U, 30U}) {
    measure_dense(edge_percent, CostKind::unit, "unit");
    measure_dense(edge_percent, CostKind::fraction, "fraction");
  }
  return 0;
}
