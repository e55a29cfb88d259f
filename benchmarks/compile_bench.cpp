// Compiling a decoder-only transformer of 1,000, 10,000 and 40,000 nodes: all of it up to the plan, the
// passes together, each alone, and the tiling alone; what a plan takes to be laid out in memory, to be saved
// and to be loaded. Every row says what is in its figure; none has reading a file or making machine code in
// it.
#include <benchmark/benchmark.h>

#include <numeric>

#include "tessera/autodiff/gradient.h"
#include "tessera/base/text.h"
#include "tessera/compile/package.h"
#include "tessera/compile/plan_function.h"
#include "tessera/engine/devices.h"
#include "tessera/op/ir_builder.h"
#include "tessera/plan/binding.h"

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
  state.SetLabel("validation and all passes over functions; without tiling and lowering");
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
  state.SetLabel("one pass over 10,000 statements as they are recorded");
}

const pattern::Target& cpu_target() { return value_or_throw(engine::find_device("cpu"))->target(); }

/// Passes, tiling, lowering.
compiler::Planned planned(const ir::FunctionRef& function) {
  return value_or_throw(compiler::plan_function(function, cpu_target()));
}

plan::Binding bound(const plan::Plan& plan) {
  std::vector<op::Layout> layouts;
  for (const plan::ValueId input : plan.inputs)
    layouts.push_back(op::contiguous(op::extents_of(plan.values[input].type.shape)));
  return value_or_throw(plan::bind(plan, {}, layouts));
}

void whole_compile(benchmark::State& state) {
  const auto function = Transformer().build(static_cast<std::size_t>(state.range(0)));
  compiler::Planned last;
  for (auto _ : state) last = planned(function);
  state.counters["steps"] = static_cast<double>(last.plan->steps.size());
  state.counters["gap"] = 1 - last.tile_bound / last.tile_cost;
  state.SetLabel("compile alone: passes, tiling, lowering, order of steps");
}

void tiling(benchmark::State& state) {
  const auto function = planned(Transformer().build(static_cast<std::size_t>(state.range(0)))).function;
  compiler::TiledFunction last;
  for (auto _ : state) last = value_or_throw(compiler::tile(*function, cpu_target()));
  state.counters["statements"] = static_cast<double>(function->body.size());
  state.counters["parts"] = static_cast<double>(last.parts.size());
  state.counters["gap"] = 1 - last.bound / last.cost;
  state.SetLabel("listing and choosing tiles, building their kernels; without passes and lowering");
}

void show_memory(benchmark::State& state, const plan::Plan& plan) {
  const MemoryLayout memory = bound(plan).memory;
  state.counters["steps"] = static_cast<double>(plan.steps.size());
  state.counters["peak/bound"] =
      static_cast<double>(memory.bytes) / static_cast<double>(std::max<std::uint64_t>(1, memory.lower_bound));
  state.counters["reuse"] = static_cast<double>(memory.without_reuse) /
                            static_cast<double>(std::max<std::uint64_t>(1, memory.bytes));
}

void layout(benchmark::State& state) {
  const auto plan = planned(Transformer().build(static_cast<std::size_t>(state.range(0)))).plan;
  for (auto _ : state) benchmark::DoNotOptimize(bound(*plan));
  show_memory(state, *plan);
  state.SetLabel("laying out the memory of a plan that is there");
}

/// The gradients of all weights of ten layers.
void compile_training_step(benchmark::State& state) {
  const auto forward = Transformer().build(410);
  std::vector<std::size_t> all(forward->params.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  const auto function = value_or_throw(autodiff::vjp(forward, all));
  compiler::Planned last;
  for (auto _ : state) last = planned(function);
  show_memory(state, *last.plan);
  state.SetLabel("compile alone, of gradients that are there");
}

/// Eight layers of unlike widths.
void compile_mlp(benchmark::State& state) {
  op::IrBuilder b;
  Value x = b.parameter("x", {ir::Dtype::f32, {64, 784}});
  for (const std::int64_t out : {512, 2048, 256, 1024, 128, 512, 64, 10}) {
    const Value w = b.parameter("w", {ir::Dtype::f32, {x.shape()[1], out}});
    x = op::unary("relu", op::matmul(x, w) + b.parameter("b", {ir::Dtype::f32, {out}}));
  }
  const auto function = value_or_throw(b.function("mlp", std::vector{op::unary("softmax", x)}));
  compiler::Planned last;
  for (auto _ : state) last = planned(function);
  show_memory(state, *last.plan);
  state.SetLabel("compile alone");
}

void save_and_load(benchmark::State& state) {
  const auto function = Transformer().build(static_cast<std::size_t>(state.range(0)));
  const auto package = compiler::package(*function, {plan::program_of(planned(function).plan)}, "cpu");
  std::size_t bytes = 0;
  for (auto _ : state) {
    const std::string text = value_or_throw(plan::to_bytes(package));
    bytes = text.size();
    benchmark::DoNotOptimize(
        value_or_throw(plan::from_bytes(Bytes::copy(std::as_bytes(std::span(text.data(), bytes))), "bench")));
  }
  state.counters["bytes"] = static_cast<double>(bytes);
  state.SetLabel("writing a plan to memory and reading it");
}

BENCHMARK(whole_compile)->Arg(1000)->Arg(10'000)->Arg(40'000)->Unit(benchmark::kMillisecond);
BENCHMARK(tiling)->Arg(1000)->Arg(10'000)->Arg(40'000)->Unit(benchmark::kMillisecond);
BENCHMARK(compile_training_step)->Unit(benchmark::kMillisecond);
BENCHMARK(compile_mlp)->Unit(benchmark::kMillisecond);
BENCHMARK(layout)->Arg(1000)->Arg(10'000)->Arg(40'000)->Unit(benchmark::kMillisecond);
BENCHMARK(save_and_load)->Arg(1000)->Arg(10'000)->Unit(benchmark::kMillisecond);
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
