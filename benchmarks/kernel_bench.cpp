// Fused kernels on one thread: by the block interpreter and by generated code, and what making code costs.
#include <benchmark/benchmark.h>

#include <bit>
#include <cmath>

#include "tessera/ir/parse.h"
#include "tessera/kernel/build.h"
#include "tessera/kernel/interpreter.h"
#include "tessera/runtime/cpu/compiled_kernel.h"

using namespace tessera;

namespace {

/// Arrays and a kernel for one text of IR; every input has numbers from -4 to 4.
struct Case {
  explicit Case(const std::string& text)
      : function(value_or_throw(ir::parse_function(text))),
        interpreter(value_or_throw(kernel::build(*function))) {
    for (const auto& param : function->params) add(*param->type, inputs);
    for (const auto& result : function->results) add(*ir::as<ir::Var>(result)->type, outputs);
  }

  template <class Number>
  static void fill(std::span<Number> values) {
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<Number>(i * 7919 % 8000) * Number{1e-3f} - Number{4};
  }

  void add(const ir::Type& type, std::vector<op::Array>& to) {
    const auto& tensor = static_cast<const ir::TensorType&>(type);
    held.push_back(value_or_throw(op::HostTensor::allocate(tensor.dtype, *ir::constant_shape(tensor.shape))));
    tensor.dtype == ir::Dtype::f64 ? fill(held.back().values<double>()) : fill(held.back().values<float>());
    to.push_back(held.back().array());
  }

  ir::FunctionRef function;
  kernel::Interpreter interpreter;
  std::vector<op::HostTensor> held;
  std::vector<op::Array> inputs, outputs;
};

void interpret(benchmark::State& state, const std::string& text) {
  Case c(text);
  kernel::Scratch scratch;
  const std::vector<std::uint64_t> parameters(c.interpreter.kernel().parameters.size(),
                                              std::bit_cast<std::uint64_t>(0.75));
  for (auto _ : state) {
    const auto done = kernel::run(c.interpreter, c.inputs, c.outputs, parameters, scratch);
    if (!done) state.SkipWithError(done.error().to_text().c_str());
  }
  state.SetItemsProcessed(state.iterations() * c.outputs[0].size());
}

void generated(benchmark::State& state, const std::string& text, bool precise = false) {
  Case c(text);
  kernel::Scratch scratch;
  runtime::cpu::CompiledKernel code(c.interpreter.kernel(), {.is_precise = precise});
  runtime::cpu::CompiledJob job;
  const std::vector<std::uint64_t> parameters(c.interpreter.kernel().parameters.size(),
                                              std::bit_cast<std::uint64_t>(0.75));
  for (auto _ : state) {
    const auto done = code.prepare(c.inputs, c.outputs, job);
    if (!done) state.SkipWithError(done.error().to_text().c_str());
    if (job.code == nullptr) state.SkipWithError(code.why_interpreted().c_str());
    code.run(job, parameters, {0, job.job.items}, scratch);
  }
  state.SetItemsProcessed(state.iterations() * c.outputs[0].size());
}

void compile(benchmark::State& state, const std::string& text, runtime::cpu::CodeQuality quality) {
  Case c(text);
  for (auto _ : state) {
    runtime::cpu::CompiledKernel code(c.interpreter.kernel(), {.quality = quality});
    runtime::cpu::CompiledJob job;
    const auto done = code.prepare(c.inputs, c.outputs, job);
    if (!done || job.code == nullptr) state.SkipWithError(code.why_interpreted().c_str());
  }
}

std::string affine_tanh(int n) {
  const std::string t = "f32[" + std::to_string(n) + "]";
  return "func f(x: " + t + ") {\n  a: " + t + " = mul(x, $0:f32)\n  b: " + t +
         " = add(a, $1:f32)\n  c: " + t + " = tanh(b)\n  d: " + t + " = mul(c, $2:f32)\n  e: " + t +
         " = add(d, x)\n  return e\n}\n";
}

std::string one_op(const std::string& op, const std::string& type, const std::string& more = "",
                   const std::string& params = "") {
  return "func f(x: " + type + params + ") {\n  y: " + type + " = " + op + "(x" + more + ")\n  return y\n}\n";
}

std::string column_sum(const std::string& type, const std::string& result) {
  return "func f(x: " + type + ") {\n  y: " + result + " = sum(x) {axes = [0]}\n  return y\n}\n";
}

const std::string layer_norm = one_op("layer_norm", "f32[4096, 768]", ", w, b", ", w: f32[768], b: f32[768]");

}  // namespace

#define KERNEL(name, text)                                                 \
  BENCHMARK_CAPTURE(interpret, name, text)->Unit(benchmark::kMicrosecond); \
  BENCHMARK_CAPTURE(generated, name, text)->Unit(benchmark::kMicrosecond)

KERNEL(affine_tanh_16, affine_tanh(16));
KERNEL(affine_tanh_1e5, affine_tanh(100000));
KERNEL(affine_tanh_1e7, affine_tanh(10000000));
KERNEL(softmax_1024x1024, one_op("softmax", "f32[1024, 1024]"));
KERNEL(layer_norm_4096x768, layer_norm);
KERNEL(sum_of_columns_64x512, column_sum("f32[64, 512]", "f32[512]"));
KERNEL(sum_of_columns_4096x768, column_sum("f32[4096, 768]", "f32[768]"));
KERNEL(gelu_1024x3072, one_op("gelu", "f32[1024, 3072]"));
KERNEL(exp_of_f64, one_op("exp", "f64[16384]"));
KERNEL(tanh_of_f64, one_op("tanh", "f64[16384]"));
KERNEL(sin_of_f64, one_op("sin", "f64[16384]"));
KERNEL(atan, one_op("atan", "f32[16384]"));
BENCHMARK_CAPTURE(compile, affine_tanh_fast, affine_tanh(16), runtime::cpu::CodeQuality::fast)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(compile, affine_tanh_good, affine_tanh(16), runtime::cpu::CodeQuality::good)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(compile, layer_norm_good, layer_norm, runtime::cpu::CodeQuality::good)
    ->Unit(benchmark::kMillisecond);

BENCHMARK_MAIN();
