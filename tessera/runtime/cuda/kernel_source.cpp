#include "tessera/runtime/cuda/kernel_source.h"

#include <optional>

#include "tessera/runtime/cuda/kernel_text.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

/// What a launch can be given: the drivers' limit for kernels of recent devices.
constexpr std::size_t most_argument_bytes = 32764;

Result<void> check_arguments(const StepProgram& program) {
  for (const Launch& launch : program.launches) {
    std::size_t bytes = 0;
    for (const Argument& argument : launch.arguments)
      bytes = (bytes + argument.bytes - 1) / argument.bytes * argument.bytes + argument.bytes;
    if (bytes > most_argument_bytes)
      return Error(ErrorCode::unsupported,
                   cat("a kernel with ", bytes, " bytes of arguments; a device takes ", most_argument_bytes));
  }
  return {};
}

/// How many operands lie contiguously along an axis, of those that vary there.
std::int64_t contiguity(const BoundKernel& bound, std::size_t axis) {
  std::int64_t out = 0;
  for (std::size_t i = 0; i < bound.kernel.operands.size(); ++i)
    if (bound.at_points[i] && bound.varies(i, axis)) out += bound.binding.stride(i, axis) == 1 ? 1 : -1;
  return out;
}

/// Whether threads side by side should have outer points side by side.
bool has_columns(const BoundKernel& bound) {
  const kernel::Binding& binding = bound.binding;
  if (binding.outer.empty() || binding.reduced.empty()) return false;
  return contiguity(bound, binding.outer.size() - 1) > contiguity(bound, binding.axis_count() - 1);
}

/// An axis along which a load is contiguous that jumps along the last one, along which results are written.
std::optional<std::size_t> crossed_axis(const BoundKernel& bound) {
  const kernel::Binding& binding = bound.binding;
  constexpr std::int64_t worth_a_tile = 8;
  const std::size_t axes = binding.axis_count();
  if (axes < 2 || bound.size_of_axis(axes - 1) < worth_a_tile) return std::nullopt;
  for (const Instruction& instruction : bound.kernel.body) {
    if (instruction.kind != InstructionKind::load || !bound.varies(instruction.index, axes - 1)) continue;
    for (std::size_t axis = 0; axis + 1 < axes; ++axis)
      if (binding.stride(instruction.index, axis) == 1 && binding.stride(instruction.index, axes - 1) != 1 &&
          bound.size_of_axis(axis) >= worth_a_tile)
        return axis;
  }
  return std::nullopt;
}

Result<StepProgram> program_of(const BoundKernel& bound, const DeviceLimits& limits) {
  if (!bound.kernel.reduces()) {
    const auto axis = crossed_axis(bound);
    return axis ? tiled_program(bound, *axis) : element_program(bound);
  }
  if (has_columns(bound)) return looped_program(bound, true);
  return fits_block(bound, limits) ? row_program(bound, limits) : looped_program(bound, false);
}

}  // namespace

Result<StepProgram> tessera::runtime::cuda::kernel_program(const kernel::Kernel& kernel,
                                                           std::span<const op::Array> inputs,
                                                           std::span<const op::Array> results,
                                                           const DeviceLimits& limits) {
  kernel::Binding binding;
  TESSERA_TRY(kernel::bind(kernel, inputs, results, binding));
  if (binding.is_empty) return StepProgram();
  const kernel::Passes passes = kernel::find_passes(kernel);
  const BoundKernel bound = bound_kernel(kernel, passes, binding, inputs, results);
  StepProgram program = TESSERA_TRY(program_of(bound, limits));
  TESSERA_TRY(check_arguments(program));
  return program;
}
