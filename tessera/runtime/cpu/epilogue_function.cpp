#include "tessera/runtime/cpu/epilogue_function.h"

#include <array>

#include "tessera/base/check.h"
#include "tessera/base/text.h"
#include "tessera/kernel/build.h"
#include "tessera/op/body.h"
#include "tessera/op/ir_builder.h"

using namespace tessera;
using namespace tessera::runtime::cpu;

namespace {

constexpr std::size_t most_operands = 3;

Result<kernel::Kernel> kernel_of(const op::Card& card) {
  op::IrBuilder builder;
  const ir::Shape line{builder.size("n")};
  op::Values operands;
  for (std::size_t i = 0; i < card.pointwise->arity; ++i)
    operands.push_back(builder.parameter(cat("x", i), {ir::Dtype::f32, i == 0 ? line : ir::Shape()}));
  const op::Values results = builder.call_all(card.name, operands);
  return kernel::build(*TESSERA_TRY(builder.function("activation", results)));
}

op::Array array_of(const float* data, op::Extents shape) {
  return {ir::Dtype::f32, op::contiguous(std::move(shape)),
          reinterpret_cast<std::byte*>(const_cast<float*>(data))};
}

}  // namespace

bool EpilogueFunction::exists(const op::Card& card) {
  return card.pointwise != nullptr && card.pointwise->arity <= most_operands && card.attributes.empty();
}

EpilogueFunction::EpilogueFunction(const op::Card& card, const KernelOptions& options)
    : kernel_(value_or_throw(kernel_of(card)), options) {
  std::vector<float> line(kernel::block_elements);
  apply(line.data(), line.size(), std::array<float, most_operands>{});
}

void EpilogueFunction::apply(float* x, std::size_t count, std::span<const float> more) {
  static thread_local CompiledJob job;
  static thread_local kernel::Scratch scratch;
  const std::size_t operands = kernel_.kernel().input_count;
  op::Array inputs[most_operands];
  inputs[0] = array_of(x, {static_cast<std::int64_t>(count)});
  for (std::size_t i = 1; i < operands; ++i) inputs[i] = array_of(&more[i - 1], {});
  const auto prepared = kernel_.prepare({inputs, operands}, {inputs, 1}, job, Readers::at_once);
  TESSERA_CHECK(prepared, prepared.error().message());
  kernel_.run(job, {}, {0, job.job.items}, scratch);
}
