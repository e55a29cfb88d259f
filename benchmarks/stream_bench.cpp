// Signatures: nanoseconds an op for the canonical encoding and its hash, from a trace that is recorded
// already. Detector: instructions a second on streams of mixed patterns, and the memory it takes.
//
// The 100 million instructions of `detector_memory` take half a minute; `--benchmark_filter=-memory` leaves
// them out.
#include <benchmark/benchmark.h>

#include <fstream>
#include <random>

#include "tessera/base/text.h"
#include "tessera/stream/components.h"
#include "tessera/stream/encoder.h"
#include "tessera/stream/hot_path_detector.h"

using namespace tessera;
using namespace tessera::stream;

namespace {

void per_op(benchmark::State& state, std::uint32_t ops) {
  state.counters["ns/op"] =
      benchmark::Counter(static_cast<double>(ops) * 1e-9,
                         benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

/// A network as it is recorded: matmul with a weight, add of a bias, an activation, now and then a residual
/// sum. `heads` of them read one input and are asked for together.
Trace network(std::uint32_t ops, std::uint32_t heads) {
  Trace trace;
  const auto op_named = [&](std::string_view name) {
    Pattern pattern;
    append_op(pattern, name, nullptr, Effect::none);
    return Label{.pattern = trace.patterns().intern(pattern.bytes)};
  };
  const Label matmul = op_named("matmul"), add = op_named("add"), relu = op_named("relu"),
              mul = op_named("mul");
  const std::int64_t batch[] = {64, 512}, weight[] = {512, 512}, bias[] = {512};
  const Label type = trace.tensor(ir::Dtype::f32, batch);
  const Operand x = trace.add_input(type);
  std::vector<Operand> h(heads, x), skip(heads, x);
  for (std::uint32_t i = 0; i < ops; ++i) {
    const std::uint32_t head = i / 5 % heads;
    const auto push = [&](const Label& op, std::initializer_list<Operand> operands) {
      h[head] = trace.result(trace.add_op(op, Effect::none, operands, {&type, 1}), 0);
    };
    switch (i % 5) {
      case 0:
        push(matmul, {h[head], trace.add_input(trace.tensor(ir::Dtype::f32, weight))});
        break;
      case 1:
        push(add, {h[head], trace.add_input(trace.tensor(ir::Dtype::f32, bias))});
        break;
      case 2:
        push(relu, {h[head]});
        break;
      case 3:
        push(mul, {h[head], Operand::parameter(ir::Dtype::f32)});
        break;
      default:
        push(add, {h[head], skip[head]});
        skip[head] = h[head];
    }
  }
  trace.set_unread_live();
  return trace;
}

/// Every op reads the one before it and any other: memory is touched in random order.
Trace random_graph(std::uint32_t ops) {
  Trace trace;
  std::mt19937_64 random(42);
  Pattern pattern;
  append_op(pattern, "add", nullptr, Effect::none);
  const Label add{.pattern = trace.patterns().intern(pattern.bytes)};
  const std::int64_t dims[] = {64, 512};
  const Label type = trace.tensor(ir::Dtype::f32, dims);
  Operand last = trace.add_input(type);
  for (std::uint32_t i = 0; i < ops; ++i) {
    const Operand other = i == 0 ? last : trace.result(static_cast<OpIndex>(random() % i), 0);
    const Operand operands[] = {last, other};
    last = trace.result(trace.add_op(add, Effect::none, operands, {&type, 1}), 0);
  }
  trace.set_unread_live();
  return trace;
}

void encode(benchmark::State& state, const Trace& trace) {
  Encoder encoder;
  for (auto _ : state) benchmark::DoNotOptimize(encoder.encode(trace).signature);
  per_op(state, trace.op_count());
}

void signature_network(benchmark::State& state) {
  encode(state, network(static_cast<std::uint32_t>(state.range(0)), 1));
}
void signature_many_results(benchmark::State& state) {
  encode(state, network(static_cast<std::uint32_t>(state.range(0)), 16));
}
void signature_random(benchmark::State& state) {
  encode(state, random_graph(static_cast<std::uint32_t>(state.range(0))));
}

/// What an engine does for an evaluation with several independent results: partition, then a signature for
/// each.
void signature_components(benchmark::State& state) {
  const Trace trace = network(static_cast<std::uint32_t>(state.range(0)), 16);
  Encoder encoder;
  Components components;
  for (auto _ : state) {
    components.partition(trace);
    for (std::size_t i = 0; i < components.size(); ++i)
      benchmark::DoNotOptimize(encoder.encode(trace, components.ops(i)).signature);
  }
  per_op(state, trace.op_count());
}

/// Instructions that are made one after the other, without allocating.
class Program {
 public:
  explicit Program(std::uint64_t seed) : random_(seed) {
    for (int i = 0; i < 64; ++i) names_.push_back(cat("op", i));
    for (int i = 0; i < 4096; ++i) rare_names_.push_back(cat("rare", i));
  }

  /// Pieces of different kinds: three ops, a layer of 25 on carried values, two graphs in turns, single ops
  /// of many kinds, a random sequence of few kinds.
  void feed(HotPathDetector& detector, std::uint64_t count) {
    for (std::uint64_t done = 0; done < count;) {
      const std::uint64_t kind = random_() % 8;
      for (int i = 0; i < 20; ++i) done += piece(detector, kind);
    }
  }

 private:
  std::uint64_t piece(HotPathDetector& detector, std::uint64_t kind) {
    if (kind < 3) return chain(detector, 0, 3);
    if (kind < 5) return carried(detector);
    if (kind == 5) return two_graphs(detector);
    if (kind == 6) return single(detector, rare_names_[random_() % rare_names_.size()]);
    return single(detector, names_[random_() % 4]);
  }
  std::uint64_t chain(HotPathDetector& detector, std::size_t first_op, std::uint64_t length) {
    for (std::uint64_t i = 0; i < length; ++i)
      op(detector, names_[first_op + i], i == 0 ? 1 : 100 + i, 2, 101 + i);
    return length;
  }
  std::uint64_t carried(HotPathDetector& detector) {
    for (std::uint64_t i = 0; i < 25; ++i)
      op(detector, names_[8 + i * i % 11], i == 0 ? 300 : 200 + i, 3 + i % 4, i == 24 ? 300 : 201 + i);
    return 25;
  }
  std::uint64_t two_graphs(HotPathDetector& detector) {
    for (std::uint64_t i = 0; i < 4; ++i) {
      op(detector, names_[24 + i], i == 0 ? 1 : 400 + i, 2, 401 + i);
      op(detector, names_[32 + i], i == 0 ? 1 : 500 + i, 2, 501 + i);
    }
    return 8;
  }
  std::uint64_t single(HotPathDetector& detector, const std::string& name) {
    op(detector, name, 1, 2, 600 + random_() % 64);
    return 1;
  }
  void op(HotPathDetector& detector, const std::string& name, ValueId a, ValueId b, ValueId result) {
    const Input inputs[] = {Input::of(a), Input::of(b)};
    const Output output{.value = result};
    benchmark::DoNotOptimize(detector.record({.op = name, .inputs = inputs, .outputs = {&output, 1}}));
  }

  std::mt19937_64 random_;
  std::vector<std::string> names_;
  std::vector<std::string> rare_names_;
};

void detector_mixed(benchmark::State& state) {
  HotPathDetector detector;
  Program program(1);
  program.feed(detector, 1'000'000);
  for (auto _ : state) program.feed(detector, 1'000'000);
  state.counters["instructions/s"] = benchmark::Counter(1e6, benchmark::Counter::kIsIterationInvariantRate);
  const HotPathStatistics statistics = detector.statistics();
  state.counters["hot"] =
      static_cast<double>(statistics.hot_instructions) / static_cast<double>(statistics.instructions);
}

/// One pattern over and over: what a detector costs once it knows the stream.
void detector_periodic(benchmark::State& state) {
  HotPathDetector detector;
  const auto period = static_cast<std::uint64_t>(state.range(0));
  std::vector<std::string> names;
  for (std::uint64_t i = 0; i < period; ++i) names.push_back(cat("op", i * i % 37));
  const auto round = [&] {
    for (std::uint64_t i = 0; i < period; ++i) {
      const Input inputs[] = {Input::of(i), Input::of(1'000'000)};
      const Output output{.value = (i + 1) % period};
      benchmark::DoNotOptimize(detector.record({.op = names[i], .inputs = inputs, .outputs = {&output, 1}}));
    }
  };
  for (int i = 0; i < 4; ++i) round();
  for (auto _ : state) round();
  state.counters["instructions/s"] =
      benchmark::Counter(static_cast<double>(period), benchmark::Counter::kIsIterationInvariantRate);
}

double resident_megabytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t pages = 0, resident = 0;
  file >> pages >> resident;
  return static_cast<double>(resident) * 4096 / 1e6;
}

/// Memory after 1 million and after 100 million instructions.
void detector_memory(benchmark::State& state) {
  for (auto _ : state) {
    HotPathDetector detector;
    Program program(2);
    program.feed(detector, 1'000'000);
    state.counters["MB at 1M"] = resident_megabytes();
    program.feed(detector, 99'000'000);
    state.counters["MB at 100M"] = resident_megabytes();
  }
  state.counters["instructions/s"] = benchmark::Counter(1e8, benchmark::Counter::kIsIterationInvariantRate);
}

}  // namespace

#define SIZES(function) BENCHMARK(function)->Arg(100)->Arg(1000)->Arg(10000)->Arg(100000)
SIZES(signature_network);
SIZES(signature_many_results);
SIZES(signature_components);
SIZES(signature_random);
BENCHMARK(detector_mixed)->Unit(benchmark::kMillisecond);
BENCHMARK(detector_periodic)->Arg(3)->Arg(100)->Arg(10000);
BENCHMARK(detector_memory)->Unit(benchmark::kSecond)->Iterations(1);

BENCHMARK_MAIN();
