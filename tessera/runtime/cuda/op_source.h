// Programs for the ops that are no fused kernels: what chooses elements by indices, goes along axes in order,
// slides windows or multiplies matrices.
#pragma once

#include <span>

#include "tessera/op/call_info.h"
#include "tessera/runtime/cuda/device_limits.h"
#include "tessera/runtime/cuda/launch.h"

namespace tessera::runtime::cuda {

/// The program of a call. Sizes are numbers; inputs may have any strides, results are contiguous. Of the
/// arrays' addresses it takes only how they are aligned and whether a result lies in an input. Scalar inputs
/// are arrays in the device's memory too. Fails with code `unsupported`, naming the op, if there is none.
[[nodiscard]] Result<StepProgram> op_program(const op::CallInfo& call, std::span<const op::Array> inputs,
                                             std::span<const op::Array> results, const DeviceLimits& limits);

/// Whether op_program has one for calls of the op.
[[nodiscard]] bool has_op_program(const op::Card& card);

/// The program that copies elements between any strides. The shapes and dtypes are the same.
[[nodiscard]] StepProgram copy_program(const op::Array& from, const op::Array& to);

}  // namespace tessera::runtime::cuda
