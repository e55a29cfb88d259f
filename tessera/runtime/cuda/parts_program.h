// Calls of composite ops, by their parts.
#pragma once

#include <functional>
#include <span>

#include "tessera/op/call_info.h"
#include "tessera/runtime/cuda/launch.h"

namespace tessera::runtime::cuda {

/// How the calls that a decomposition writes become programs.
using ProgramOfCall = std::function<Result<StepProgram>(
    const op::CallInfo& call, std::span<const op::Array> inputs, std::span<const op::Array> results)>;

/// The program of a call whose card has a decomposition. What lies between the parts is scratch memory; f16
/// and bf16 are computed in f32 and rounded once, at the end. REQUIRES a decomposition.
[[nodiscard]] Result<StepProgram> parts_program(const op::CallInfo& call, std::span<const op::Array> inputs,
                                                std::span<const op::Array> results,
                                                const ProgramOfCall& program_of_call);

}  // namespace tessera::runtime::cuda
