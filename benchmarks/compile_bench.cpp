// The passes on a decoder-only transformer of 1,000 and 10,000 nodes: all of them together, and each alone.
#include <benchmark/benchmark.h>

#include "tessera/base/text.h"
#include "tessera/compile/pipeline.h"
#include "tessera/op/ir_builder.h"

using namespace tessera;
using op::Value;

namespace {

constexpr std::int64_t tokens = 128, width = 256, heads = 8, size = width / heads;

/// As a framework records it, op by op: 41 statements a layer.
class Transformer {
 public:
  ir::FunctionRef build(std::size_t nodes) {
    Value x = b_.parameter("x", {ir::Dtype::f32, {tokens, width}});
    while (b_.statements().size() + 41 <= nodes) x = layer(x);
    while (b_.statements().size() < nodes) x = op::unary("tanh", x);
    return value_or_throw(b_.function("transformer", std::vector{x}));
  }

 private:
  Value weight(ir::Shape shape) {
    return b_.parameter(cat("w", next_++), {ir::Dtype::f32, std::move(shape)});
  }
  Value linear(Value x, std::int64_t in, std::int64_t out) {
    return op::matmul(x, weight({in, out})) + weight({out});
  }

  Value norm(Value x) {
    const Value mean = b_.call("mean", {x}, {{"axes", std::vector<std::int64_t>{-1}}, {"keepdims", true}});
    const Value centred = x - mean;
    const Value variance =
        b_.call("mean", {centred * centred}, {{"axes", std::vector<std::int64_t>{-1}}, {"keepdims", true}});
    return centred * op::unary("rsqrt", variance + 1e-5) * weight({width}) + weight({width});
  }

  Value split(Value x) {
    return op::transpose(op::reshape(x, {tokens, heads, size}), std::vector<std::int64_t>{1, 0, 2});
  }

  Value attention(Value x) {
    const Value q = split(linear(x, width, width)), k = split(linear(x, width, width));
    const Value v = split(linear(x, width, width));
    const Value scores = op::matmul(q, op::transpose_matrix(k)) * 0.125;
    const Value mixed = op::matmul(op::unary("softmax", scores), v);
    const Value joined = op::transpose(mixed, std::vector<std::int64_t>{1, 0, 2});
    return linear(op::reshape(joined, {tokens, width}), width, width);
  }

  Value layer(Value x) {
    const Value y = x + attention(norm(x));
    const Value wide = op::unary("gelu", linear(norm(y), width, 4 * width));
    return y + linear(wide, 4 * width, width);
  }

  op::IrBuilder b_;
  int next_ = 0;
};

void run(benchmark::State& state, const ir::FunctionRef& function, const compiler::PipelineOptions& options) {
  std::size_t after = 0;
  for (auto _ : state) after = value_or_throw(compiler::run_passes(function, options)).function->body.size();
  state.counters["statements"] = static_cast<double>(function->body.size());
  state.counters["after"] = static_cast<double>(after);
  state.counters["s/statement"] =
      benchmark::Counter(static_cast<double>(function->body.size()),
                         benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void all_passes(benchmark::State& state) {
  run(state, Transformer().build(static_cast<std::size_t>(state.range(0))), {});
}

void all_passes_by_parts(benchmark::State& state) {
  compiler::PipelineOptions options;
  options.passes.takes = [](const op::CallInfo&) { return false; };
  run(state, Transformer().build(static_cast<std::size_t>(state.range(0))), options);
}

void one_pass(benchmark::State& state, const compiler::Pass& pass) {
  const auto function = Transformer().build(10'000);
  const compiler::PassOptions options;
  for (auto _ : state) {
    compiler::PassContext context(options);
    benchmark::DoNotOptimize(value_or_throw(pass.run(function, context)));
  }
}

BENCHMARK(all_passes)->Arg(1000)->Arg(10'000)->Unit(benchmark::kMillisecond);
BENCHMARK(all_passes_by_parts)->Arg(1000)->Arg(10'000)->Unit(benchmark::kMillisecond);

}  // namespace

int main(int argc, char** argv) {
  for (const compiler::Pass& pass : compiler::all_passes())
    benchmark::RegisterBenchmark(cat("pass/", pass.name).c_str(), [&pass](benchmark::State& state) {
      one_pass(state, pass);
    })->Unit(benchmark::kMillisecond);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
