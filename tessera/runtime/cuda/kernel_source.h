// From a kernel and its arrays to what a device runs.
#pragma once

#include <span>

#include "tessera/kernel/kernel.h"
#include "tessera/op/array.h"
#include "tessera/runtime/cuda/device_limits.h"
#include "tessera/runtime/cuda/launch.h"

namespace tessera::runtime::cuda {

/// The launches that compute the kernel on these arrays. Of their data pointers only the alignment counts.
/// Numbers have the index of the kernel's own parameter as their slot. Nothing to compute: no launches. The
/// source depends on the kernel and on how the arrays lie (what is contiguous, aligned, broadcast, short or
/// long), not on sizes. Rows that fit into what `limits` leave a block are read once. Fails as kernel::bind
/// does, and with `unsupported` where there is no code.
[[nodiscard]] Result<StepProgram> kernel_program(const kernel::Kernel& kernel,
                                                 std::span<const op::Array> inputs,
                                                 std::span<const op::Array> results,
                                                 const DeviceLimits& limits);

}  // namespace tessera::runtime::cuda
