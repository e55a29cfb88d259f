// Structural hash and equality on large graphs, and the speed of the text form.
//
// "creation order": each node uses the one made before it and another one nearby, so that a walk goes through
// memory as it was filled. "random order": both operands are any earlier nodes.
#include <benchmark/benchmark.h>

#include <random>

#include "tessera/base/text.h"
#include "tessera/ir/parse.h"
#include "tessera/ir/print.h"
#include "tessera/ir/structural_equal.h"
#include "tessera/ir/structural_hash.h"

using namespace tessera;
using namespace tessera::ir;

namespace {

enum class Order : bool { creation, random };

struct Leaves {
  Ref<Var> x = variable("x", scalar_type(Dtype::i64));
  Ref<Var> y = variable("y", scalar_type(Dtype::i64));
};

struct Graph {
  ExprRef root;
  std::size_t nodes = 0;
};

/// Every node is reachable from the root: it is an operand of the next one, or of a later one in random
/// order.
Graph make_graph(std::size_t count, Order order, const Leaves& leaves = {}) {
  std::mt19937_64 random(42);
  const auto& [x, y] = leaves;
  std::vector<ExprRef> nodes{scalar_op(ScalarOpcode::add, {x, y}), scalar_op(ScalarOpcode::mul, {x, y})};
  std::vector<std::size_t> unused{0, 1};  // in random order: nodes that no node uses yet
  nodes.reserve(count);
  while (nodes.size() < count) {
    const std::size_t n = nodes.size();
    std::size_t a = n - 1, b = n - 1 - random() % std::min<std::size_t>(n, 8);
    if (order == Order::random) {
      const std::size_t at = random() % unused.size();
      a = unused[at];
      unused[at] = unused.back();
      unused.pop_back();
      b = random() % n;
      unused.push_back(n);
      if (unused.size() < 1000 && n > 2000) unused.push_back(random() % n);
    }
    nodes.push_back(
        scalar_op(random() % 2 == 0 ? ScalarOpcode::add : ScalarOpcode::mul, {nodes[a], nodes[b]}));
  }
  ExprRef root = nodes.back();
  for (std::size_t i : unused) root = scalar_op(ScalarOpcode::add, {root, nodes[i]});
  return {root, count + (order == Order::random ? unused.size() : 0)};
}

void hash_graph(benchmark::State& state, Order order, CompareMode mode) {
  const Graph graph = make_graph(static_cast<std::size_t>(state.range(0)), order);
  benchmark::DoNotOptimize(structural_hash(*graph.root, mode));  // the system hands out fresh memory slowly
  for (auto _ : state) benchmark::DoNotOptimize(structural_hash(*graph.root, mode));
  state.counters["nodes/s"] =
      benchmark::Counter(static_cast<double>(graph.nodes), benchmark::Counter::kIsIterationInvariantRate);
}

void equal_graphs(benchmark::State& state, Order order, CompareMode mode) {
  // Strict: the two share their variables, so that they are equal.
  const Leaves leaves;
  const Graph a = make_graph(static_cast<std::size_t>(state.range(0)), order, leaves);
  const Graph b = make_graph(static_cast<std::size_t>(state.range(0)), order,
                             mode == CompareMode::strict ? leaves : Leaves());
  if (!structural_equal(*a.root, *b.root, mode)) state.SkipWithError("not equal");
  for (auto _ : state) {
    if (!structural_equal(*a.root, *b.root, mode)) state.SkipWithError("not equal");
  }
  state.counters["nodes/s"] =
      benchmark::Counter(static_cast<double>(a.nodes), benchmark::Counter::kIsIterationInvariantRate);
}

/// A function of `count` statements, as a model has them.
std::string function_text(std::size_t count) {
  std::string text = "func main[N](v0: f32[N, 784], w: f32[784, 784]) {\n";
  for (std::size_t i = 1; i <= count; ++i) {
    if (i % 3 == 0)
      text += cat("  v", i, ": f32[N, 784] = matmul(v", i - 1, ", w)\n");
    else if (i % 3 == 1)
      text += cat("  v", i, ": f32[N, 784] = add(v", i - 1, ", v", i / 2, ")\n");
    else
      text += cat("  v", i, ": f32[N, 784] = softmax(v", i - 1, ") {axis = -1, scale = 0.125}\n");
  }
  return text + cat("  return v", count, "\n}\n");
}

void parse_text(benchmark::State& state) {
  const std::string text = function_text(100000);
  for (auto _ : state) benchmark::DoNotOptimize(parse(text));
  state.SetBytesProcessed(static_cast<std::int64_t>(text.size()) * state.iterations());
}

void print_text(benchmark::State& state) {
  const NodeRef node = value_or_throw(parse(function_text(100000)));
  std::size_t bytes = 0;
  for (auto _ : state) bytes += print(*node).size();
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes));
}

}  // namespace

// Creation order first: freeing a random graph leaves the free slots in random order.
#define GRAPHS(function, name, ...) \
  BENCHMARK_CAPTURE(function, name, __VA_ARGS__)->Arg(1000000)->Arg(10000000)->Unit(benchmark::kMillisecond)
GRAPHS(hash_graph, creation_mapping, Order::creation, CompareMode::mapping);
GRAPHS(hash_graph, creation_strict, Order::creation, CompareMode::strict);
GRAPHS(equal_graphs, creation_mapping, Order::creation, CompareMode::mapping);
GRAPHS(equal_graphs, creation_strict, Order::creation, CompareMode::strict);
GRAPHS(hash_graph, random_mapping, Order::random, CompareMode::mapping);
GRAPHS(hash_graph, random_strict, Order::random, CompareMode::strict);
GRAPHS(equal_graphs, random_mapping, Order::random, CompareMode::mapping);
GRAPHS(equal_graphs, random_strict, Order::random, CompareMode::strict);
BENCHMARK(parse_text)->Unit(benchmark::kMillisecond);
BENCHMARK(print_text)->Unit(benchmark::kMillisecond);

BENCHMARK_MAIN();
