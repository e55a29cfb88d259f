// A region as nodes of a graph: kernels that decide, and a conditional node whose bodies are programs of
// plans. What a loop carries lies in the step's results from turn to turn; the host is not asked.
#pragma once

#include <span>

#include "tessera/runtime/cuda/plan_program.h"

namespace tessera::runtime::cuda {

/// The program of a step that is one `if`, `switch`, `while` or `for`, as a part of another: its inputs and
/// outputs are the step's. Sizes are those of the step's function. Fails for regions that have to ask the
/// host. REQUIRES that there are plans of bodies in the options.
[[nodiscard]] Result<PlanProgram> region_program(const plan::Step& step, std::span<const op::Array> inputs,
                                                 std::span<const op::Array> results,
                                                 std::span<const std::int64_t> sizes,
                                                 const ProgramOptions& options);

}  // namespace tessera::runtime::cuda
