// Every op that can be a kernel, as one: on its samples in every dtype, on arrays of any strides, on empty
// ones, against the reference; by the interpreter and, where the system has LLVM, by generated code.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "tessera/kernel/build.h"
#include "tessera/kernel/interpreter.h"
#include "tessera/op/ir_builder.h"
#include "tessera/runtime/cpu/compiled_kernel.h"
#include "tests/support/compare.h"
#include "tests/support/op_samples.h"
#include "tests/support/repeats.h"

using namespace tessera;
using namespace tessera::op;
using fixture::dtypes_of;
using fixture::op_samples;
using fixture::Sample;
using fixture::scattered;
using fixture::tolerance;

namespace {

/// The function of one call; sizes as symbols if `sizes` is null.
Result<ir::FunctionRef> function_of(const Sample& sample, Dtype dtype, const Sample::Sizes* sizes) {
  IrBuilder builder;
  Values inputs;
  for (const auto& [name, symbol] : sample.symbols) builder.adopt_size(symbol);
  const ValueTypes types = sample.types(dtype, sizes);
  for (std::size_t i = 0; i < types.size(); ++i) inputs.push_back(builder.parameter(cat("x", i), types[i]));
  const Values results = builder.call_all(sample.card->name, inputs, sample.attributes_with(sizes));
  return builder.function("call", results);
}

std::vector<HostTensor> like(const std::vector<HostTensor>& tensors) {
  std::vector<HostTensor> out;
  for (const HostTensor& t : tensors) {
    out.push_back(value_or_throw(HostTensor::allocate(t.dtype(), t.shape())));
    std::memset(out.back().array().data, 0x5a, out.back().byte_size());
  }
  return out;
}

std::vector<Array> arrays_of(const std::vector<HostTensor>& tensors) {
  std::vector<Array> out;
  for (const HostTensor& t : tensors) out.push_back(t.array());
  return out;
}

void expect_close(const std::vector<HostTensor>& got, const std::vector<HostTensor>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t k = 0; k < got.size(); ++k)
    EXPECT_LE(fixture::largest_difference(got[k], expected[k]), tolerance(expected[k].dtype()))
        << "result " << k;
}

void run_and_compare(const kernel::Kernel& kernel, const std::vector<Array>& inputs,
                     const std::vector<HostTensor>& expected) {
  const kernel::Interpreter interpreter(kernel);
  kernel::Scratch scratch;
  const auto results = like(expected);
  const auto done = kernel::run(interpreter, inputs, arrays_of(results), {}, scratch);
  ASSERT_TRUE(done) << done.error().to_text() << "\n" << kernel::to_text(kernel);
  expect_close(results, expected);
}

/// Ops that were compiled.
std::set<std::string_view> compiled;

void compile_and_compare(const kernel::Kernel& kernel, std::string_view op, const std::vector<Array>& inputs,
                         const std::vector<HostTensor>& expected) {
  namespace cpu = runtime::cpu;
  cpu::CompiledKernel code(kernel, {.quality = cpu::CodeQuality::fast});
  cpu::CompiledJob job;
  const auto results = like(expected);
  const auto done = code.prepare(inputs, arrays_of(results), job);
  ASSERT_TRUE(done) << done.error().to_text();
  if (job.code == nullptr) return;
  compiled.insert(op);
  kernel::Scratch scratch;
  code.run(job, {}, {0, job.job.items}, scratch);
  expect_close(results, expected);
}

bool is_reshaping(const kernel::Kernel& kernel) {
  for (const kernel::Operand& operand : kernel.operands)
    if (operand.is_reshaped) return true;
  return false;
}

void check_sample(const Sample& sample, Dtype dtype, const Sample::Sizes& sizes, bool symbolic,
                  bool compiles = false) {
  const auto function = function_of(sample, dtype, symbolic ? nullptr : &sizes);
  if (!function) return;  // these sizes do not make a call
  const auto kernel = kernel::build(**function);
  if (!kernel) return;
  const auto inputs = sample.values(dtype, sizes, 1);
  const auto expected = fixture::run(sample, inputs, sizes);
  if (!expected) {  // reducing nothing
    kernel::Scratch scratch;
    const auto types =
        value_or_throw(infer(*sample.card, sample.types(dtype, &sizes), sample.attributes_with(&sizes)));
    const HostTensor result =
        value_or_throw(HostTensor::allocate(types[0].dtype, extents_of(types[0].shape)));
    EXPECT_FALSE(
        kernel::run(kernel::Interpreter(*kernel), arrays_of(inputs), arrays_of({result}), {}, scratch));
    return;
  }
  run_and_compare(*kernel, arrays_of(inputs), *expected);
  if (compiles) compile_and_compare(*kernel, sample.card->name, arrays_of(inputs), *expected);
  if (is_reshaping(*kernel)) return;  // asks for a copy of what has odd strides
  std::vector<HostTensor> held;
  std::vector<Array> strided;
  for (const HostTensor& input : inputs) {
    Layout layout;
    held.push_back(scattered(input, layout));
    strided.push_back({input.dtype(), layout, held.back().array().data});
  }
  run_and_compare(*kernel, strided, *expected);
  // One dtype of each kind: making code takes its time.
  if (compiles && (dtype == Dtype::f32 || dtype == Dtype::i32))
    compile_and_compare(*kernel, sample.card->name, strided, *expected);
}

TEST(Kernels, EverySampleAgreesWithTheReference) {
  for (const Sample& sample : op_samples())
    for (Dtype dtype : dtypes_of(*sample.card))
      for (bool symbolic : {false, true}) {
        SCOPED_TRACE(cat(sample.text, " in ", to_string(dtype), symbolic ? ", symbolic" : ""));
        check_sample(sample, dtype, sample.sizes, symbolic);
      }
}

TEST(Kernels, SizesOfZeroOneAndManyAgreeWithTheReference) {
  for (const Sample& sample : op_samples())
    for (std::int64_t size : {0, 1, 5, 67})
      for (const auto& [name, symbol] : sample.symbols) {
        Sample::Sizes sizes = sample.sizes;
        sizes[name] = size;
        SCOPED_TRACE(cat(sample.text, " with ", name, " = ", size));
        const Dtype dtype = dtypes_of(*sample.card).front();
        check_sample(sample, dtype, sizes, false);
        if (size != 0) check_sample(sample, Dtype::f32, sizes, false);
      }
}

TEST(Kernels, GeneratedCodeAgreesWithTheReference) {
  const auto llvm = runtime::cpu::Llvm::open();
  if (!llvm) GTEST_SKIP() << llvm.error().to_text();
  for (const Sample& sample : op_samples())
    for (Dtype dtype : dtypes_of(*sample.card)) {
      // A sanitizer sees nothing of the code that is generated.
      if (fixture::is_sanitized && dtype != Dtype::f32 && dtype != Dtype::i32) continue;
      SCOPED_TRACE(cat(sample.text, " in ", to_string(dtype)));
      check_sample(sample, dtype, sample.sizes, false, true);
    }
  EXPECT_GE(compiled.size(), 80U);
  for (const char* op : {"add", "gelu", "layer_norm", "log_softmax", "mean", "relu", "softmax", "tanh"})
    EXPECT_TRUE(compiled.contains(op)) << op;
}

/// Asked of the cards: element-wise ops, reductions and what is made of them.
TEST(Kernels, MostOfTheCatalogueCanBeFused) {
  std::set<std::string_view> fused;
  for (const Sample& sample : op_samples()) {
    const Dtype dtype = dtypes_of(*sample.card).front();
    const bool can = kernel::can_fuse(*sample.card, sample.types(dtype, &sample.sizes),
                                      sample.attributes_with(&sample.sizes));
    EXPECT_TRUE(can || !(sample.card->traits.elementwise || sample.card->traits.reduction)) << sample.text;
    if (can) fused.insert(sample.card->name);
  }
  for (std::string_view name :
       {"softmax", "log_softmax", "layer_norm", "rms_norm", "batch_norm", "logsumexp"})
    EXPECT_TRUE(fused.contains(name)) << name;
  EXPECT_GE(fused.size(), 115U);
  EXPECT_FALSE(fused.contains("matmul"));
  EXPECT_FALSE(fused.contains("sort"));
}

}  // namespace
