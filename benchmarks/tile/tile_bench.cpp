// How long the tiler takes from a graph and a target to the tiling: matching, growing, covering.
//
//   tessera bench tile                  all rows
//   tessera bench tile chain dense      some: transformer, chain, copies, dense
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <string_view>
#include <vector>

#include "benchmarks/tile/instances.h"
#include "tessera/cover/ilp_oracle.h"
#include "tessera/cover/instances.h"
#include "tessera/pattern/tiler.h"

using namespace tessera;
using namespace tessera::bench;
using namespace tessera::pattern;

namespace {

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Times {
  double total = 0;
  double list = 0;
};

/// The median of nine runs after a first that does not count.
Times measure(const char* name, const TileInstance& instance) {
  std::vector<double> totals;
  std::vector<double> lists;
  Tiling tiling;
  for (int i = 0; i < 10; ++i) {
    const auto start = std::chrono::steady_clock::now();
    tiling = value_or_throw(tile(instance.graph, instance.target));
    if (i == 0) continue;
    totals.push_back(milliseconds_since(start));
    lists.push_back(tiling.list_ms);
  }
  const Times times{median(totals), median(lists)};
  std::printf(
      "%-24s %7u nodes %8zu candidates (%4.1f a node) %8.2f ms (best %.2f), of it listing %7.2f  %s, %zu "
      "uncovered%s\n",
      name, instance.graph.node_count(), tiling.candidates,
      static_cast<double>(tiling.candidates) / instance.graph.node_count(), times.total,
      *std::min_element(totals.begin(), totals.end()), times.list, tiling.optimal ? "optimal" : "NOT PROVEN",
      tiling.uncovered.size(), tiling.gaps.empty() ? ", all listed" : tiling.gaps[0].c_str());
  std::fflush(stdout);
  return times;
}

/// 60 nodes, 300 candidates of two nodes or more, and one for each node alone.
void measure_dense() {
  constexpr std::uint64_t seeds = 100;
  constexpr int seconds = 1;  // for CBC, as for us
  const auto cbc = cover::IlpOracle::find(cover::IlpOracle::Program::cbc);
  std::vector<double> ours;
  std::vector<double> theirs;
  std::uint64_t proven = 0;
  double largest_gap = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const auto costs = seed % 2 == 0 ? cover::CostKind::unit : cover::CostKind::fraction;
    const cover::Problem problem = cover::dense_problem(15, costs, seed);
    const TileInstance instance = from_problem(problem);
    auto start = std::chrono::steady_clock::now();
    const Tiling tiling =
        value_or_throw(tile(instance.graph, instance.target, {.budget = std::chrono::milliseconds(1000)}));
    ours.push_back(milliseconds_since(start));
    proven += tiling.optimal ? 1 : 0;
    largest_gap = std::max(largest_gap, tiling.gap);
    if (!tiling.optimal)
      std::printf("  seed %llu: gap %.4f\n", static_cast<unsigned long long>(seed), tiling.gap);
    if (!cbc) continue;
    start = std::chrono::steady_clock::now();
    const auto cost = cbc->least_cost(problem, seconds);
    theirs.push_back(milliseconds_since(start));
    if (cost && tiling.optimal && std::abs(*cost - tiling.cost) > 1e-4 * *cost)
      std::printf("  seed %llu: cost %g, but %g by cbc\n", static_cast<unsigned long long>(seed), tiling.cost,
                  *cost);
  }
  std::printf("dense, 60 nodes          %llu of %llu proven in 1 s, median %.1f ms, largest gap %.4f; ",
              static_cast<unsigned long long>(proven), static_cast<unsigned long long>(seeds), median(ours),
              largest_gap);
  if (cbc)
    std::printf("cbc median %.1f ms (at most %d s an instance)\n", median(theirs), seconds);
  else
    std::puts("cbc is not installed");
}

}  // namespace

int main(int argc, char** argv) {
  const auto is_wanted = [&](std::string_view row) {
    return argc < 2 || std::any_of(argv + 1, argv + argc, [&](const char* name) { return row == name; });
  };
  if (is_wanted("transformer")) {
    measure("transformer, 12 layers", transformer(12));
    measure("transformer, 100 layers", transformer(100));
  }
  if (is_wanted("chain")) {
    const Times once = measure("chain", chain(100'000));
    const Times twice = measure("  twice as long", chain(200'000));
    std::printf("  %.2f times the time for twice the length\n", twice.total / once.total);
  }
  if (is_wanted("copies")) {
    const Times copy = measure("1,000 copies", copies(1000));
    std::printf("  %.2f times the time of listing their candidates\n", copy.total / copy.list);
  }
  if (is_wanted("dense")) measure_dense();
  return 0;
}
