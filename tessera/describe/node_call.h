// A node on a device as a call on arrays in its memory.
#pragma once

#include "tessera/describe/host_executor.h"
#include "tessera/op/bound_call.h"

namespace tessera::description {

/// Of a node whose buffers are all there. An op reads its numbers from memory. Code is given the pins and
/// numbers of its node in their order: for a pin that appends the rows, the counter, and a kernel also the
/// capacity; for one that has no buffer null; a capture also where a number in device memory lies.
[[nodiscard]] op::BoundCallRef node_call(const Program& program, std::uint32_t node, const BoundNode& bound);

/// Bits of a double for a float, of an i64 for the others.
[[nodiscard]] std::int64_t number_bits(const Argument& number);

/// Which argument of a kernel's code an argument of its node is.
[[nodiscard]] std::uint32_t code_argument(const BoundNode& bound, std::size_t argument);

}  // namespace tessera::description
