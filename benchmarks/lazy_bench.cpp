// The price of laziness: recording, sorting, freeing, and small evaluations beside PyTorch and NumPy.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tessera/engine/node.h"
#include "tessera/tensor/create.h"
#include "tessera/tensor/graph.h"
#include "tessera/tensor/scope.h"

using namespace tessera;
using Clock = std::chrono::steady_clock;

namespace {

double seconds_since(Clock::time_point began) {
  return std::chrono::duration<double>(Clock::now() - began).count();
}

/// Recording alone: a thousand calls are timed, freed outside the time.
void record_add(benchmark::State& state) {
  const Tensor a = ones({16}).eval(), b = ones({16}).eval();
  std::vector<Tensor> kept(1000);
  for (auto _ : state) {
    const auto began = Clock::now();
    for (Tensor& c : kept) c = a + b;
    state.SetIterationTime(seconds_since(began));
    for (Tensor& c : kept) c = Tensor();
  }
  state.SetItemsProcessed(state.iterations() * 1000);
  state.counters["node_bytes"] = sizeof(engine::Node);
}
BENCHMARK(record_add)->UseManualTime();

/// Each thread records and frees on tensors of its own.
void record_and_free_add(benchmark::State& state) {
  const Tensor a = ones({16}).eval(), b = ones({16}).eval();
  for (auto _ : state) benchmark::DoNotOptimize(a + b);
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(record_and_free_add)->Threads(1)->Threads(2)->UseRealTime();

void build_sort_free(benchmark::State& state) {
  for (auto _ : state) {
    Tensor x = ones({4}).eval();
    const Tensor y = x;
    for (std::int64_t i = 1; i < state.range(0); ++i) x = x + y;
    benchmark::DoNotOptimize(x.graph().topological_order());
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(build_sort_free)->Arg(100'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond);

/// Every step joins a graph of one node with the graph so far.
void accumulate(benchmark::State& state) {
  for (auto _ : state) {
    Tensor sum = tensor({0});
    for (std::int64_t i = 0; i < state.range(0); ++i) sum = tensor({1}) + sum;
    benchmark::DoNotOptimize(sum.item<float>({0}));
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(accumulate)->Arg(10'000)->Arg(100'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond);

double dependent_adds() {
  const Tensor x = ones({16}).eval();
  std::vector<double> times;
  for (int round = 0; round < 51; ++round) {
    const auto began = Clock::now();
    Tensor y = x;
    for (int i = 0; i < 1000; ++i) y = y + x;
    eval(y);
    times.push_back(seconds_since(began));
  }
  std::nth_element(times.begin(), times.begin() + 25, times.end());
  return times[25];
}

/// 1,000 dependent adds of 16 floats, ours and theirs in turn.
void compare_with_peers() {
  const char* script = R"(
import statistics, time
def median(f):
    times = []
    for _ in range(51):
        began = time.perf_counter(); f(); times.append(time.perf_counter() - began)
    return statistics.median(times)
def adds(x):
    y = x
    for _ in range(1000): y = y + x
try:
    import numpy; x = numpy.ones(16, numpy.float32); print('numpy', median(lambda: adds(x)))
except ImportError: pass
try:
    import torch; torch.set_num_threads(1); z = torch.ones(16); print('torch', median(lambda: adds(z)))
except ImportError: pass
)";
  std::printf("\n1,000 dependent adds of 16 floats, medians of 51\n");
  const double ours = dependent_adds();
  std::printf("  tessera %8.0f us (record, evaluate, free)\n", ours * 1e6);
  std::fflush(stdout);
  ::setenv("TESSERA_PEERS", script, 1);
  FILE* peers = ::popen("/usr/bin/python3 -c \"$TESSERA_PEERS\" 2>/dev/null", "r");
  char name[32];
  double seconds = 0;
  while (peers != nullptr && std::fscanf(peers, "%31s %lf", name, &seconds) == 2)
    std::printf("  %-7s %8.0f us, %.2f of it is ours\n", name, seconds * 1e6, ours / seconds);
  if (peers != nullptr) ::pclose(peers);
}

}  // namespace

int main(int argc, char** argv) {
  const bool everything = argc == 1;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  if (everything) compare_with_peers();
}
