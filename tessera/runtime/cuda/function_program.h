// A function as a program of the device: its calls one after another, what they give each other in memory of
// the step.
#pragma once

#include <span>

#include "tessera/ir/function.h"
#include "tessera/op/array.h"
#include "tessera/runtime/cuda/call_program.h"

namespace tessera::runtime::cuda {

/// Sizes are taken from the inputs, or from `sizes` (one per size symbol of the function) if they do not
/// follow from them. Numbers have the slots of the function's parameters. Fails with code `unsupported`,
/// naming op and line, for regions and for calls that have no program.
[[nodiscard]] Result<StepProgram> function_program(const ir::Function& function,
                                                   std::span<const op::Array> inputs,
                                                   std::span<const op::Array> results,
                                                   std::span<const std::int64_t> sizes, const Means& means);

}  // namespace tessera::runtime::cuda
