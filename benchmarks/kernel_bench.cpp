// Fused kernels on one thread: by the block interpreter.
#include <benchmark/benchmark.h>

#include <cmath>

#include "tessera/ir/parse.h"
#include "tessera/kernel/build.h"
#include "tessera/kernel/interpreter.h"

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

  void add(const ir::Type& type, std::vector<op::Array>& to) {
    const auto& tensor = static_cast<const ir::TensorType&>(type);
    held.push_back(value_or_throw(op::HostTensor::allocate(tensor.dtype, *ir::constant_shape(tensor.shape))));
    auto values = held.back().values<float>();
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>(i * 7919 % 8000) * 1e-3f - 4.0f;
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
  const std::vector<double> parameters(c.interpreter.kernel().parameters.size(), 0.75);
  for (auto _ : state) {
    const auto done = kernel::run(c.interpreter, c.inputs, c.outputs, parameters, scratch);
    if (!done) state.SkipWithError(done.error().to_text().c_str());
  }
  state.SetItemsProcessed(state.iterations() * c.outputs[0].size());
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

const std::string layer_norm = one_op("layer_norm", "f32[4096, 768]", ", w, b", ", w: f32[768], b: f32[768]");

}  // namespace

BENCHMARK_CAPTURE(interpret, affine_tanh_16, affine_tanh(16));
BENCHMARK_CAPTURE(interpret, affine_tanh_1e5, affine_tanh(100000))->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(interpret, affine_tanh_1e7, affine_tanh(10000000))->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(interpret, softmax_1024x1024, one_op("softmax", "f32[1024, 1024]"))
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(interpret, layer_norm_4096x768, layer_norm)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(interpret, gelu_1024x3072, one_op("gelu", "f32[1024, 3072]"))
    ->Unit(benchmark::kMicrosecond);

BENCHMARK_MAIN();
