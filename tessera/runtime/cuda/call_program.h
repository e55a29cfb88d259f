// From calls and steps to programs of the device: as a kernel where there is a formula, by a source of its
// own where there is none, by its parts if it is composite.
#pragma once

#include <span>

#include "tessera/ir/function.h"
#include "tessera/op/call_info.h"
#include "tessera/plan/plan.h"
#include "tessera/runtime/cuda/device_limits.h"
#include "tessera/runtime/cuda/launch.h"

namespace tessera::runtime::cuda {

/// Who computes matrix products: kernels of our own, a library, or a library that does what follows too.
enum class Products : std::uint8_t { by_kernels, by_library, by_library_with_ends };

/// What programs are made for.
struct Means {
  Products products = Products::by_kernels;
  DeviceLimits limits = {};
};

/// Arrays carry dtype and layout; their addresses are compared and looked at for alignment, never read. Fails
/// with code `unsupported`, naming the op, if there is no way.
[[nodiscard]] Result<StepProgram> call_program(const op::CallInfo& call, std::span<const op::Array> inputs,
                                               std::span<const op::Array> results, const Means& means);

/// The same of a step of a plan, whose symbols have these sizes. `call` is what it calls, if it is one.
[[nodiscard]] Result<StepProgram> step_program(const plan::Step& step, const op::CallInfo* call,
                                               std::span<const op::Array> inputs,
                                               std::span<const op::Array> results,
                                               std::span<const std::int64_t> sizes, const Means& means);

}  // namespace tessera::runtime::cuda
