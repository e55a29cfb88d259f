#include "tessera/runtime/cuda/call_program.h"

#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/kernel/build.h"
#include "tessera/op/catalogue.h"
#include "tessera/runtime/call_function.h"
#include "tessera/runtime/cuda/function_program.h"
#include "tessera/runtime/cuda/kernel_source.h"
#include "tessera/runtime/cuda/library_product.h"
#include "tessera/runtime/cuda/op_source.h"
#include "tessera/runtime/cuda/parts_program.h"
#include "tessera/runtime/cuda/program_draft.h"
#include "tessera/runtime/cuda/user_program.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

bool is_contiguous(const op::Array& array) { return array.layout.is_contiguous(); }

/// A kernel that sees an input in an order that its strides do not allow reads a copy.
Result<StepProgram> kernel_of_copies(const kernel::Kernel& kernel, std::span<const op::Array> inputs,
                                     std::span<const op::Array> results, const DeviceLimits& limits) {
  ProgramDraft draft(inputs, results);
  std::vector<ProgramArray> in, out;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    in.push_back(draft.input(i));
    if (is_contiguous(inputs[i])) continue;
    const ProgramArray copy = draft.scratch(inputs[i].dtype, inputs[i].shape());
    draft.add(copy_program(inputs[i], copy.array), {&in.back(), 1}, {&copy, 1});
    in.back() = copy;
  }
  for (std::size_t i = 0; i < results.size(); ++i) out.push_back(draft.result(i));
  draft.add(TESSERA_TRY(kernel_program(kernel, arrays_of(in), results, limits)), in, out);
  return std::move(draft).finish();
}

Result<StepProgram> program_of_kernel(const kernel::Kernel& kernel, std::span<const op::Array> inputs,
                                      std::span<const op::Array> results, const DeviceLimits& limits) {
  auto program = kernel_program(kernel, inputs, results, limits);
  if (program || std::all_of(inputs.begin(), inputs.end(), is_contiguous)) return program;
  return kernel_of_copies(kernel, inputs, results, limits);
}

}  // namespace

Result<StepProgram> tessera::runtime::cuda::call_program(const op::CallInfo& call,
                                                         std::span<const op::Array> inputs,
                                                         std::span<const op::Array> results,
                                                         const Means& means) {
  // A card of the caller's own may have the name of another.
  if (op::find_card(call.card().name) != &call.card())
    return Error(ErrorCode::unsupported, cat("op '", call.card().name,
                                             "' is not in the catalogue: it has no "
                                             "program for this device"));
  if (op::device_call_of(call.card()) != nullptr)
    return user_program(call, inputs, results, std::vector<InputNumber>(inputs.size()), {});
  if (const auto to = copied_in_order(call, inputs, results)) return copy_program(inputs[0], *to);
  if (const auto kernel = kernel::build(*function_of(call, inputs, results)))
    return program_of_kernel(*kernel, inputs, results, means.limits);
  if (means.products != Products::by_kernels)
    if (auto program = library_product(call, inputs, results)) return *std::move(program);
  if (call.card().decompose != nullptr && !has_op_program(call.card())) {
    const auto of_part = [&means](const op::CallInfo& part, std::span<const op::Array> in,
                                  std::span<const op::Array> out) {
      return call_program(part, in, out, means);
    };
    return parts_program(call, inputs, results, of_part);
  }
  return op_program(call, inputs, results, means.limits);
}

Result<StepProgram> tessera::runtime::cuda::step_program(const plan::Step& step, const op::CallInfo* call,
                                                         std::span<const op::Array> inputs,
                                                         std::span<const op::Array> results,
                                                         std::span<const std::int64_t> sizes,
                                                         const Means& means) {
  if (step.kind == plan::StepKind::copy) return copy_program(inputs[0], results[0]);
  if (call != nullptr) return call_program(*call, inputs, results, means);
  if (step.kind == plan::StepKind::library && means.products == Products::by_library_with_ends)
    if (auto program = library_chain(*step.function, inputs, results)) return *std::move(program);
  if (step.kernel == nullptr) return function_program(*step.function, inputs, results, sizes, means);
  StepProgram out = TESSERA_TRY(program_of_kernel(*step.kernel, inputs, results, means.limits));
  // Which parameters of the plan these are is the step's affair: one kernel serves several.
  for (Launch& launch : out.launches)
    for (Argument& argument : launch.arguments)
      if (argument.kind == Argument::Kind::number) argument.slot = step.kernel->slots[argument.slot];
  return out;
}
