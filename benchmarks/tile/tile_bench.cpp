// How long the tiler takes from a graph and a target to the tiling: matching, growing, covering.
//
// `tessera bench tile --help` lists the rows and options.
#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <optional>
#include <string_view>
#include <vector>

#include "benchmarks/tile/instances.h"
#include "tessera/base/text.h"
#include "tessera/cover/ilp_oracle.h"
#include "tessera/cover/instances.h"
#include "tessera/op/op_facts.h"
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

constexpr const char* help =
    "usage: tessera bench tile [ROW...] [--filter TEXT] [--seconds S]\n"
    "  ROW            transformer, compiler, chain, copies, woven or dense; all if none is named\n"
    "  --filter TEXT  rows whose name contains the text\n"
    "  --seconds S    no further run of a row after so many seconds (default 60; all 100 seeds of dense "
    "take\n"
    "                 some minutes where cbc is installed)\n";

struct Options {
  std::vector<std::string_view> rows;
  std::string_view filter;
  double seconds = 600;

  [[nodiscard]] bool wants(std::string_view row) const {
    return (rows.empty() || std::ranges::find(rows, row) != rows.end()) &&
           row.find(filter) != std::string_view::npos;
  }
};
constexpr std::string_view row_names[] = {"transformer", "compiler", "chain", "copies", "woven", "dense"};

/// Whether a row has time for another run.
class RowClock {
 public:
  explicit RowClock(double seconds) : seconds_(seconds) {}
  [[nodiscard]] bool has_time() const { return milliseconds_since(start_) < 1e3 * seconds_; }

 private:
  double seconds_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// What is known of the tiling: optimal is one of all tiles, not of a part of them.
const char* proof_of(const Tiling& tiling) {
  if (!tiling.optimal) return "NOT PROVEN";
  return tiling.gaps.empty() ? "optimal" : "best of the listed";
}

struct Times {
  double total = 0;
  double processor = 0;
  double list = 0;
};

/// The median of nine runs after a first that does not count, of fewer if they take long. Short ones go on
/// for a fifth of a second, so that most of them find the memory that the first took from the system.
Times measure(const char* name, const TileInstance& instance, double seconds) {
  const RowClock clock(seconds);
  std::vector<double> totals;
  std::vector<double> processor;
  std::vector<double> lists;
  Tiling tiling;
  const RowClock short_clock(std::min(seconds, 0.2));
  for (int i = 0; (i < 10 && (i < 2 || clock.has_time())) || short_clock.has_time(); ++i) {
    const auto start = std::chrono::steady_clock::now();
    const double used = processor_ms();
    Tiling next = value_or_throw(tile(instance.graph, instance.target));
    const double total = milliseconds_since(start);
    const double used_now = processor_ms() - used;
    tiling = std::move(next);  // the last one lives until then, as in a program that tiles again
    if (i == 0) continue;
    totals.push_back(total);
    processor.push_back(used_now);
    lists.push_back(tiling.list_ms);
  }
  const Times times{median(totals), median(processor), median(lists)};
  std::printf(
      "%-24s %7u nodes %8zu candidates (%4.1f a node) %8.2f ms, %8.2f ms of the processor, listing %7.2f ms  "
      "%s, %zu uncovered, %s\n",
      name, instance.graph.node_count(), tiling.candidates,
      static_cast<double>(tiling.candidates) / instance.graph.node_count(), times.total, times.processor,
      times.list, proof_of(tiling), tiling.uncovered.size(),
      tiling.gaps.empty() ? "all listed" : tiling.gaps[0].c_str());
  std::fflush(stdout);
  return times;
}

/// From a function to its tiling, as a compiler needs it.
Times measure_function(const char* name, const ir::Function& function, const Target& target, double seconds) {
  const RowClock clock(seconds);
  std::vector<double> totals;
  std::vector<double> processor;
  std::vector<double> reads;
  Tiling tiling;
  for (int i = 0; i < 10 && (i < 2 || clock.has_time()); ++i) {
    tiling = {};
    const auto start = std::chrono::steady_clock::now();
    const double used = processor_ms();
    const Graph graph = value_or_throw(graph_of(function, op::op_facts()));
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
      proof_of(tiling), tiling.tiles.size(), tiling.uncovered.size(),
      tiling.gaps.empty() ? "all listed" : tiling.gaps[0].c_str());
  std::fflush(stdout);
  return times;
}

void measure_compiler(double seconds) {
  const Target target = compiler_target();
  const auto measure_widths = [&](const char* small_name, const char* large_name, LayerWidths widths) {
    const Times small = measure_function(small_name, *decoder(19, widths), target, seconds);
    const Times large = measure_function(large_name, *decoder(190, widths), target, seconds);
    std::printf("  %.2f times the time for ten times the layers\n", large.processor / small.processor);
  };
  measure_widths("function, 19 layers", "function, 190 layers", LayerWidths::equal);
  measure_widths("  of different widths, 19 layers", "  of different widths, 190 layers",
                 LayerWidths::different);
}

/// One run, with a budget or to the proof.
void measure_woven(const char* name, const TileInstance& instance, std::optional<int> budget_ms) {
  TileOptions options;
  if (budget_ms) options.budget = std::chrono::milliseconds(*budget_ms);
  const auto start = std::chrono::steady_clock::now();
  const double used = processor_ms();
  const Tiling tiling = value_or_throw(tile(instance.graph, instance.target, options));
  std::printf(
      "%-30s %7u nodes %8zu candidates %8.1f ms, %8.1f ms of the processor  %zu tiles, cost %.1f, %s, gap "
      "%.3f, %s\n",
      name, instance.graph.node_count(), tiling.candidates, milliseconds_since(start), processor_ms() - used,
      tiling.tiles.size(), tiling.cost, proof_of(tiling), tiling.gap,
      tiling.gaps.empty() ? "all listed" : "not all listed");
  std::fflush(stdout);
}

void measure_woven() {
  measure_woven("woven", woven(1000), {});
  measure_woven("  a product in 25", woven(1000, 25), 10'000);
  measure_woven("  a product in 15", woven(1000, 15), 10'000);
  for (const int budget_ms : {200, 2000})
    for (const std::uint32_t product_every : {0U, 25U}) {
      const std::string name =
          cat(product_every == 0 ? "  no product" : "  a product in 25", ", ", budget_ms, " ms");
      measure_woven(name.c_str(), woven(3000, product_every), budget_ms);
    }
}

/// 60 nodes, 300 candidates of two nodes or more, and one for each node alone. Times are of the processor.
void measure_dense(double seconds) {
  constexpr std::uint64_t seeds = 100;
  const RowClock clock(seconds);
  const auto cbc = cover::IlpOracle::find(cover::IlpOracle::Program::cbc);
  std::vector<double> ours;
  std::vector<double> theirs;
  std::uint64_t proven = 0;
  std::uint64_t seed = 0;
  for (; seed < seeds && clock.has_time(); ++seed) {
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
              static_cast<unsigned long long>(proven), static_cast<unsigned long long>(seed), median(ours));
  if (cbc)
    std::printf("cbc %.1f ms, stopped after 1 s (-1: not solved)\n", median(theirs));
  else
    std::puts("cbc is not installed");
}

bool is_number(std::string_view text, double& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() && out > 0;
}

void run(const Options& options) {
  const double seconds = options.seconds;
  if (options.wants("transformer")) {
    measure("transformer, 12 layers", transformer(12), seconds);
    measure("transformer, 100 layers", transformer(100), seconds);
  }
  if (options.wants("compiler")) measure_compiler(seconds);
  if (options.wants("chain")) {
    const Times once = measure("chain", chain(100'000), seconds);
    const Times twice = measure("  twice as long", chain(200'000), seconds);
    std::printf("  %.2f times the time for twice the length\n", twice.processor / once.processor);
  }
  if (options.wants("copies")) {
    const Times copy = measure("1,000 copies", copies(1000), seconds);
    std::printf("  %.2f times the time of listing their candidates\n", copy.total / copy.list);
  }
  if (options.wants("woven")) measure_woven();
  if (options.wants("dense")) measure_dense(seconds);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const std::string_view value = i + 1 < argc ? argv[i + 1] : "";
    if (argument == "--help" || argument == "-h") {
      std::fputs(help, stdout);
      return 0;
    }
    if (argument == "--filter" && i + 1 < argc) {
      options.filter = argv[++i];
    } else if (argument == "--seconds" && is_number(value, options.seconds)) {
      ++i;
    } else if (std::ranges::find(row_names, argument) != std::end(row_names)) {
      options.rows.push_back(argument);
    } else {
      std::fprintf(stderr, "tessera: bench tile: unexpected '%s'\n%s", argv[i], help);
      return 2;
    }
  }
  run(options);
  return 0;
}
