// What the names in the examples of header comments stand for. header_examples_test.py takes the examples out
// of the headers and compiles this file, without making code of it.
#include "tessera/tessera.h"

#include "tessera/base/program_end.h"
#include "tessera/base/reflect.h"
#include "tessera/base/result.h"
#include "tessera/base/run_meter.h"
#include "tessera/capi/tessera.h"
#include "tessera/compile/function_draft.h"
#include "tessera/compile/plan_program.h"
#include "tessera/cover/cover.h"
#include "tessera/describe/builder.h"
#include "tessera/describe/host_graph.h"
#include "tessera/describe/validate.h"
#include "tessera/engine/autotune.h"
#include "tessera/engine/devices.h"
#include "tessera/engine/graph_device.h"
#include "tessera/engine/graph_package.h"
#include "tessera/engine/op_compiler.h"
#include "tessera/ir/node.h"
#include "tessera/kernel/interpreter.h"
#include "tessera/model/onnx_model.h"
#include "tessera/nn/optimizer.h"
#include "tessera/nn/parameters.h"
#include "tessera/op/formula.h"
#include "tessera/pattern/pattern_builder.h"
#include "tessera/pattern/tiler.h"
#include "tessera/runtime/cpu/library_call.h"
#include "tessera/runtime/cpu/matmul.h"
#include "tessera/runtime/cpu/weight_form.h"
#include "tessera/runtime/cuda/emulator/emulator.h"
#include "tessera/runtime/derived.h"
#include "tessera/stream/hot_path_detector.h"
#include "tessera/stream/trace.h"
#include "tessera/tensor/captured.h"
#include "tessera/tensor/compiled.h"
#include "tessera/tensor/custom.h"
#include "tessera/tensor/gradient.h"
#include "tessera/tensor/kernel.h"
#include "tessera/tensor/region.h"
#include "tessera/tensor/saved_plan.h"
#include "tessera/tensor/tensor.h"
#include "tessera/tensor/tree.h"

#include "example/tessera/tessera.h"

namespace tessera {

Result<void> base_program_end() {
#include "example/tessera/base/program_end.h"
  return {};
}

namespace base_reflect {
#include "example/tessera/base/reflect.h"
static_assert(std::tuple_size_v<decltype(Attrs::fields())> == 1);
}  // namespace base_reflect

namespace base_result {
struct Shape {
  [[nodiscard]] int rank() const { return 0; }
};
#define ELIDED return Shape{};
#include "example/tessera/base/result.h"
#undef ELIDED
}  // namespace base_result

Result<void> base_run_meter() {
#define ELIDED
#include "example/tessera/base/run_meter.h"
#undef ELIDED
  return {};
}

void capi() {
#include "example/tessera/capi/tessera.h"
}

namespace compiler {
ir::ExprRef simplified(const Ref<ir::Assign>& statement, op::IrBuilder& builder);
ir::FunctionRef function_draft(const ir::FunctionRef& function, bool is_foldable) {
#include "example/tessera/compile/function_draft.h"
}
}  // namespace compiler

namespace cover {
Result<void> cover() {
#include "example/tessera/cover/cover.h"
  return {};
}
}  // namespace cover

namespace description {
void builder(){
#include "example/tessera/describe/builder.h"
} Result<void> host_graph(Builder& b, const Bindings& bindings) {
#include "example/tessera/describe/host_graph.h"
  return {};
}
}  // namespace description

namespace engine {
using namespace description;
Result<void> tune(const ir::FunctionRef& function, std::shared_ptr<runtime::Device> device) {
#include "example/tessera/engine/autotune.h"
  return {};
}
void queue_fft(const op::StreamCall& call);
Result<void> on_device(const Description& description) {
#include "example/tessera/engine/graph_device.h"
  return {};
}
Result<void> in_file(const Description& description, const KernelTable& kernels, const Bindings& bindings) {
#define ELIDED
#include "example/tessera/engine/graph_package.h"
#undef ELIDED
  return {};
}
Result<void> compiled(const Description& description, const KernelTable& kernels) {
#include "example/tessera/engine/op_compiler.h"
  return {};
}
}  // namespace engine

namespace ir {
void node(const ExprRef& value, const Span& span) {
#define ELIDED value
#include "example/tessera/ir/node.h"
#undef ELIDED
}
}  // namespace ir

namespace kernel {
Result<void> interpreter(const Kernel& kernel, std::span<const op::Array> inputs,
                         std::span<const op::Array> outputs, std::span<const std::uint64_t> parameters,
                         Scratch& scratch) {
#include "example/tessera/kernel/interpreter.h"
  return {};
}
}  // namespace kernel

void model(const Tensor& x) {
#include "example/tessera/model/onnx_model.h"
}

void optimizer(nn::Parameters& parameters, const nn::Parameters& gradients, double rate){
#include "example/tessera/nn/optimizer.h"
} Tensor model(const nn::Parameters& parameters, const Tensor& x);
void parameters(const nn::Parameters& parameters, const Tensor& x, const Tensor& y) {
#include "example/tessera/nn/parameters.h"
}

namespace op::formula {
#include "example/tessera/op/formula.h"
}  // namespace op::formula

namespace pattern {
Result<void> builder() {
#include "example/tessera/pattern/pattern_builder.h"
  return {};
}
Result<void> tiler(const Graph& graph, const Target& target) {
#define ELIDED (void)tile;
#include "example/tessera/pattern/tiler.h"
#undef ELIDED
  return {};
}
}  // namespace pattern

namespace runtime::cpu {
Result<void> library_call(const LibraryForm& form, std::span<const op::Array> inputs,
                          std::span<const op::Array> results, std::span<const std::uint64_t> numbers,
                          const WeightSource& weights, Libraries& libraries, kernel::Scratch& scratch) {
#include "example/tessera/runtime/cpu/library_call.h"
  return {};
}
}  // namespace runtime::cpu
}  // namespace tessera

namespace tessera {
namespace runtime::cpu {
Result<void> matmul(const MatmulSpec& spec, const float* weights, const float* x, float* y,
                    kernel::Scratch& scratch) {
#include "example/tessera/runtime/cpu/matmul.h"
  return {};
}
struct PackedWeightsOfCall : Derived {};
void weight_form(WeightsAs<PackedWeightsOfCall>& packed_, const LibraryLaunch& launch,
                 const op::Array& weights, bool (*serves)(const PackedWeightsOfCall&),
                 std::shared_ptr<const PackedWeightsOfCall> (*make)()) {
#define ELIDED
#include "example/tessera/runtime/cpu/weight_form.h"
#undef ELIDED
}
}  // namespace runtime::cpu

namespace runtime {
struct PackedProduct : Derived {
  [[nodiscard]] bool serves(const cpu::MatmulSpec& spec) const;
};
void derived(DerivedSet& set, const cpu::MatmulSpec& spec, std::size_t bytes, MemoryPool& pool,
             std::shared_ptr<const PackedProduct> (*make)()) {
#include "example/tessera/runtime/derived.h"
}
}  // namespace runtime

namespace runtime::cuda {
Result<void> emulator(std::span<const StepProgram> programs, const StepProgram& program,
                      std::span<const op::Array> inputs, std::span<const op::Array> results,
                      std::span<const double> numbers) {
#include "example/tessera/runtime/cuda/emulator/emulator.h"
  return {};
}
}  // namespace runtime::cuda

namespace stream {
void hot_path_detector(std::span<const Instruction> stream, void (*compile)(const Hash128&)) {
#include "example/tessera/stream/hot_path_detector.h"
}
void trace(std::span<const std::int64_t> dims, PatternId relu, const Label& type) {
#include "example/tessera/stream/trace.h"
}
}  // namespace stream
}  // namespace tessera

// What a program of a user looks like stands outside of the namespace.
using cudaStream_t = struct CudaStream*;
void library_fft(const float* x, float* y, std::int64_t count, cudaStream_t stream);

void captured() {
#include "example/tessera/tensor/captured.h"
}
void compiled(const ts::Tensor& x, ts::Tensor w) {
#include "example/tessera/tensor/compiled.h"
}
void custom(const ts::Tensor& x) {
#define ELIDED
#include "example/tessera/tensor/custom.h"
#undef ELIDED
}
void device_op() {
#include "example/tessera/tensor/device_op.h"
}
void gradient(ts::Tensor w, const ts::Tensor& b, ts::Tensor (*loss_of)(const std::vector<ts::Tensor>&)) {
#include "example/tessera/tensor/gradient.h"
}
void kernel(const ts::Tensor& x) {
#include "example/tessera/tensor/kernel.h"
}
void region(const ts::Tensor& x, const ts::Tensor& zero, const ts::Tensor& one) {
#include "example/tessera/tensor/region.h"
}
void saved_plan(const ts::Tensor& x, const ts::Tensor& w) {
#include "example/tessera/tensor/saved_plan.h"
}
void tensor(const ts::Tensor& x, const ts::Tensor& w, const ts::Tensor& b) {
#include "example/tessera/tensor/tensor.h"
}
void tree() {
  const auto train = [](const auto& state) { return state; };
#include "example/tessera/tensor/tree.h"
}
