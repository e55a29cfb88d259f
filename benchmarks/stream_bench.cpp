// Signatures: nanoseconds an op for the canonical encoding and its hash, from a trace that is recorded
// already.
#include <benchmark/benchmark.h>

#include <random>

#include "tessera/base/text.h"
#include "tessera/stream/components.h"
#include "tessera/stream/encoder.h"

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

}  // namespace

#define SIZES(function) BENCHMARK(function)->Arg(100)->Arg(1000)->Arg(10000)->Arg(100000)
SIZES(signature_network);
SIZES(signature_many_results);
SIZES(signature_components);
SIZES(signature_random);

BENCHMARK_MAIN();
