// Finds gelu in the body of a kernel.
#pragma once

#include <optional>

#include "tessera/kernel/kernel.h"

namespace tessera::kernel {

/// The x of 0.5 * x * (1 + erf(x * sqrt(1/2))), if a value of the body is that, in f32. Computed as it
/// stands, nothing is left of a large negative x: 1 + erf is a difference of nearly equal numbers.
[[nodiscard]] std::optional<ValueId> gelu_operand(const Kernel& kernel, const Instruction& value);

}  // namespace tessera::kernel
