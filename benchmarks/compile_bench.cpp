// Compiling a decoder-only transformer of 1,000, 10,000 and 40,000 nodes: all of it up to the plan, the
// passes together, each alone, and the tiling alone; what a plan takes to be laid out in memory, to be saved
// and to be loaded. Every row says what is in its figure; none has reading a file or making machine code in
// it.
#include <benchmark/benchmark.h>

#include "tessera/base/text.h"
#include "tessera/compile/package.h"
#include "tessera/compile/plan_function.h"
#include "tessera/engine/devices.h"
#include "tessera/plan/binding.h"
#include "tests/support/compile_graphs.h"

using namespace tessera;
using fixture::Transformer;

namespace {

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
    benchmark::DoNotOptimize(value_or_throw(std::get<compiler::PassFunction>(pass.run)(function, context)));
  }
  state.SetLabel("one pass over 10,000 statements as they are recorded");
}

const pattern::Target& cpu_target() { return value_or_throw(engine::find_device("cpu"))->target(); }

/// Passes, tiling, lowering.
compiler::Planned planned(const ir::FunctionRef& function) {
  return value_or_throw(compiler::plan_function(function, cpu_target()));
}

/// What the CPU binds.
plan::Binding bound(const plan::PlanRef& plan) {
  const auto layouts = value_or_throw(plan::contiguous_inputs(*plan, {}));
  return value_or_throw(value_or_throw(engine::find_device("cpu"))->plan_memory(plan, {}, layouts));
}

void whole_compile(benchmark::State& state) {
  const auto function = Transformer().build(static_cast<std::size_t>(state.range(0)));
  compiler::Planned last;
  for (auto _ : state) last = planned(function);
  state.counters["steps"] = static_cast<double>(last.plan->steps.size());
  state.counters["gap"] = 1 - last.tiling.bound / last.tiling.cost;
  state.SetLabel("compile alone: passes, tiling, lowering, order of steps");
}

void tiling(benchmark::State& state) {
  const auto function = planned(Transformer().build(static_cast<std::size_t>(state.range(0)))).function;
  compiler::TiledFunction last;
  for (auto _ : state) last = value_or_throw(compiler::tile(*function, cpu_target()));
  state.counters["statements"] = static_cast<double>(function->body.size());
  state.counters["parts"] = static_cast<double>(last.parts.size());
  state.counters["gap"] = 1 - last.tiling.bound / last.tiling.cost;
  state.SetLabel("listing and choosing tiles, building their kernels; without passes and lowering");
}

void show_memory(benchmark::State& state, const plan::PlanRef& plan) {
  const MemoryLayout memory = bound(plan).memory;
  state.counters["steps"] = static_cast<double>(plan->steps.size());
  state.counters["peak/bound"] =
      static_cast<double>(memory.bytes) / static_cast<double>(std::max<std::uint64_t>(1, memory.lower_bound));
  state.counters["reuse"] = static_cast<double>(memory.without_reuse) /
                            static_cast<double>(std::max<std::uint64_t>(1, memory.bytes));
}

void layout(benchmark::State& state) {
  const auto plan = planned(Transformer().build(static_cast<std::size_t>(state.range(0)))).plan;
  for (auto _ : state) benchmark::DoNotOptimize(bound(plan));
  show_memory(state, plan);
  state.SetLabel("laying out the memory of a plan that is there");
}

void compile_training_step(benchmark::State& state) {
  const auto function = fixture::training_step();
  compiler::Planned last;
  for (auto _ : state) last = planned(function);
  show_memory(state, last.plan);
  state.SetLabel("compile alone, of gradients that are there");
}

void compile_mlp(benchmark::State& state) {
  const auto function = fixture::mlp();
  compiler::Planned last;
  for (auto _ : state) last = planned(function);
  show_memory(state, last.plan);
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
  for (const compiler::Pass& pass : compiler::function_passes())
    benchmark::RegisterBenchmark(cat("pass/", pass.name).c_str(), [&pass](benchmark::State& state) {
      one_pass(state, pass);
    })->Unit(benchmark::kMillisecond);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
