// A loop inside a kernel: a `while` or a `for` whose state one block can hold runs there from its begin to
// its end, so that an iteration costs a barrier or none and no launch.
#pragma once

#include <span>

#include "tessera/ir/function.h"
#include "tessera/op/array.h"
#include "tessera/runtime/cuda/launch.h"

namespace tessera::runtime::cuda {

/// The program of a function of one statement that is a `while` or a `for` region, as steps of plans have it.
/// Every result of its bodies must be a kernel of what goes into them. Slots of numbers are the function's.
/// Fails with code `unsupported` for other regions and bodies, and for more state or work than one block
/// should have.
[[nodiscard]] Result<StepProgram> loop_program(const ir::Function& function,
                                               std::span<const op::Array> inputs,
                                               std::span<const op::Array> results);

/// What a loop may carry, and the points that a kernel of it may have: more is computed faster by many
/// blocks.
inline constexpr std::int64_t most_loop_bytes = 1 << 20, most_loop_points = 1 << 18;

}  // namespace tessera::runtime::cuda
