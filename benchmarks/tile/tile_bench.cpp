// How long the tiler takes from a graph and a target to the tiling: matching, growing, covering.
//
//   tessera bench tile                  all rows
//   tessera bench tile chain dense      some: transformer, compiler, chain, copies, dense
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <string_view>
#include <vector>

#include "benchmarks/tile/instances.h"
#include "tessera/cover/ilp_oracle.h"
#include "tessera/cover/instances.h"
#include "tessera/pattern/graph_function.h"
#include "tessera/pattern/tiler.h"

using namespace tessera;
using namespace tessera::bench;
using namespace tessera::pattern;

namespace {

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

/// What this thread used of its processor: on a machine that others use too, what the wall clock would show
/// alone.
double processor_ms() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

/// The same of the programs this one has run.
double children_ms() {
  rusage used{};
  getrusage(RUSAGE_CHILDREN, &used);
  const auto ms = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) / 1e3;
  };
  return ms(used.ru_utime) + ms(used.ru_stime);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Times {
  double total = 0;
  double processor = 0;
  double list = 0;
};

/// The median of nine runs after a first that does not count.
Times measure(const char* name, const TileInstance& instance) {
  std::vector<double> totals;
  std::vector<double> processor;
  std::vector<double> lists;
  Tiling tiling;
  for (int i = 0; i < 10; ++i) {
    tiling = {};
    const auto start = std::chrono::steady_clock::now();
    const double used = processor_ms();
    tiling = value_or_throw(tile(instance.graph, instance.target));
    if (i == 0) continue;
    totals.push_back(milliseconds_since(start));
    processor.push_back(processor_ms() - used);
    lists.push_back(tiling.list_ms);
  }
  const Times times{median(totals), median(processor), median(lists)};
  std::printf(
      "%-24s %7u nodes %8zu candidates (%4.1f a node) %8.2f ms, %8.2f ms of the processor, listing %7.2f ms  "
      "%s, %zu uncovered, %s\n",
      name, instance.graph.node_count(), tiling.candidates,
      static_cast<double>(tiling.candidates) / instance.graph.node_count(), times.total, times.processor,
      times.list, tiling.optimal ? "optimal" : "NOT PROVEN", tiling.uncovered.size(),
      tiling.gaps.empty() ? "all listed" : tiling.gaps[0].c_str());
  std::fflush(stdout);
  return times;
}

/// From a function to its tiling, as a compiler needs it.
Times measure_function(const char* name, const ir::Function& function, const Target& target) {
  std::vector<double> totals;
  std::vector<double> processor;
  std::vector<double> reads;
  Tiling tiling;
  for (int i = 0; i < 10; ++i) {
    tiling = {};
    const auto start = std::chrono::steady_clock::now();
    const double used = processor_ms();
    const Graph graph = value_or_throw(graph_of(function));
    const double read = processor_ms() - used;
    tiling = value_or_throw(tile(graph, target));
    if (i == 0) continue;
    totals.push_back(milliseconds_since(start));
    processor.push_back(processor_ms() - used);
    reads.push_back(read);
  }
  const Times times{median(totals), median(processor), 0};
  std::printf(
      "%-34s %6zu statements %7zu candidates %8.2f ms, %8.2f ms of the processor, reading the function %6.2f "
      "ms  %s, %zu tiles, %zu uncovered, %s\n",
      name, function.body.size(), tiling.candidates, times.total, times.processor, median(reads),
      tiling.optimal ? "optimal" : "NOT PROVEN", tiling.tiles.size(), tiling.uncovered.size(),
      tiling.gaps.empty() ? "all listed" : tiling.gaps[0].c_str());
  std::fflush(stdout);
  return times;
}

void measure_compiler() {
  const Target target = compiler_target();
  const auto measure_widths = [&](const char* small_name, const char* large_name, LayerWidths widths) {
    const Times small = measure_function(small_name, *decoder(19, widths), target);
    const Times large = measure_function(large_name, *decoder(190, widths), target);
    std::printf("  %.2f times the time for ten times the layers\n", large.processor / small.processor);
  };
  measure_widths("function, 19 layers", "function, 190 layers", LayerWidths::equal);
  measure_widths("  of different widths, 19 layers", "  of different widths, 190 layers",
                 LayerWidths::different);
}

/// 60 nodes, 300 candidates of two nodes or more, and one for each node alone. Times are of the processor.
void measure_dense() {
  constexpr std::uint64_t seeds = 100;
  const auto cbc = cover::IlpOracle::find(cover::IlpOracle::Program::cbc);
  std::vector<double> ours;
  std::vector<double> theirs;
  std::uint64_t proven = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const auto costs = seed % 2 == 0 ? cover::CostKind::unit : cover::CostKind::fraction;
    const cover::Problem problem = cover::dense_problem(15, costs, seed);
    const TileInstance instance = from_problem(problem);
    const double start = processor_ms();
    const Tiling tiling =
        value_or_throw(tile(instance.graph, instance.target, {.budget = std::chrono::milliseconds(1000)}));
    ours.push_back(processor_ms() - start);
    proven += tiling.optimal ? 1 : 0;
    std::printf("  seed %2llu: cost %8.3f in %6.1f ms, gap %.4f", static_cast<unsigned long long>(seed),
                tiling.cost, ours.back(), tiling.gap);
    if (cbc) {
      const double before = children_ms();
      const auto cost = cbc->least_cost(problem, 1);
      theirs.push_back(children_ms() - before);
      std::printf("; cbc %8.3f in %6.1f ms", cost.value_or(-1), theirs.back());
    }
    std::puts("");
    std::fflush(stdout);
  }
  std::printf("dense, 60 nodes: %llu of %llu proven in 1 s, median %.1f ms of the processor; ",
              static_cast<unsigned long long>(proven), static_cast<unsigned long long>(seeds), median(ours));
  if (cbc)
    std::printf("cbc %.1f ms, stopped after 1 s (-1: not solved)\n", median(theirs));
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
  if (is_wanted("compiler")) measure_compiler();
  if (is_wanted("chain")) {
    const Times once = measure("chain", chain(100'000));
    const Times twice = measure("  twice as long", chain(200'000));
    std::printf("  %.2f times the time for twice the length\n", twice.processor / once.processor);
  }
  if (is_wanted("copies")) {
    const Times copy = measure("1,000 copies", copies(1000));
    std::printf("  %.2f times the time of listing their candidates\n", copy.total / copy.list);
  }
  if (is_wanted("dense")) measure_dense();
  return 0;
}
