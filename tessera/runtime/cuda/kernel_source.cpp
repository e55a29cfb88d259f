#include "tessera/runtime/cuda/kernel_source.h"

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

Result<StepProgram> program_of(const BoundKernel& bound) {
  if (!bound.kernel.reduces()) return element_program(bound);
  return Error(ErrorCode::unsupported, "reductions");
}

}  // namespace

Result<StepProgram> tessera::runtime::cuda::kernel_program(const kernel::Kernel& kernel,
                                                           std::span<const op::Array> inputs,
                                                           std::span<const op::Array> results) {
  kernel::Binding binding;
  TESSERA_TRY(kernel::bind(kernel, inputs, results, binding));
  if (binding.is_empty) return StepProgram();
  const kernel::Passes passes = kernel::find_passes(kernel);
  StepProgram program = TESSERA_TRY(program_of(bound_kernel(kernel, passes, binding, inputs, results)));
  TESSERA_TRY(check_arguments(program));
  return program;
}
