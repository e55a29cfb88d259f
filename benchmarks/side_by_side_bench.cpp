// Two chains of matrix products that do not depend on each other, on one thread and on two.
#include <benchmark/benchmark.h>

#include "tessera/base/text.h"
#include "tessera/compile/plan_function.h"
#include "tessera/ir/parse.h"
#include "tessera/runtime/cpu/cpu_device.h"

using namespace tessera;

namespace {

constexpr int chains = 2, length = 8;

/// Products of `size` x `size` matrices.
ir::FunctionRef chains_of(std::int64_t size) {
  const std::string type = cat("f32[", size, ", ", size, "]");
  std::string text = cat("func f(w: ", type), results;
  for (int c = 0; c < chains; ++c) text += cat(", x", c, ": ", type);
  text += ") {\n";
  for (int c = 0; c < chains; ++c) {
    for (int i = 0; i < length; ++i)
      text += cat("  y", c, "_", i, ": ", type, " = matmul(", i == 0 ? cat("x", c) : cat("y", c, "_", i - 1),
                  ", w)\n");
    results += cat(c == 0 ? "" : ", ", "y", c, "_", length - 1);
  }
  return value_or_throw(ir::parse_function(cat(text, "  return ", results, "\n}")));
}

void two_chains(benchmark::State& state) {
  const std::int64_t size = state.range(0);
  const auto device = std::make_shared<runtime::cpu::CpuDevice>(
      runtime::cpu::CpuOptions{.threads = static_cast<unsigned>(state.range(1))});
  const auto planned = value_or_throw(compiler::plan_function(chains_of(size), device->target()));
  const auto executable = value_or_throw(device->load(planned.plan, runtime::MemoryPool::create()));
  std::vector<op::HostTensor> tensors;
  std::vector<std::byte*> inputs, outputs;
  std::vector<op::Layout> layouts;
  for (int i = 0; i < chains + 1; ++i) {
    tensors.push_back(value_or_throw(op::HostTensor::allocate(op::Dtype::f32, {size, size})));
    inputs.push_back(tensors.back().array().data);
    layouts.push_back(tensors.back().array().layout);
  }
  value_or_throw(executable->prepare({}, layouts));
  for (int c = 0; c < chains; ++c) {
    tensors.push_back(value_or_throw(op::HostTensor::allocate(op::Dtype::f32, {size, size})));
    outputs.push_back(tensors.back().array().data);
  }
  for (auto _ : state)
    value_or_throw(executable->run({.inputs = inputs, .parameters = {}, .outputs = outputs}));
  state.counters["GFLOP/s"] =
      benchmark::Counter(2e-9 * static_cast<double>(size * size * size) * chains * length,
                         benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(two_chains)
    ->ArgNames({"size", "threads"})
    ->ArgsProduct({{32, 64, 128, 256, 512}, {1, 2}})
    ->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
