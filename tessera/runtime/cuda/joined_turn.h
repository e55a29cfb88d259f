// The end of a loop's turn in the kernel before it: a turn that is one kernel costs one node.
#pragma once

#include <optional>
#include <span>

#include "tessera/runtime/cuda/plan_program.h"

namespace tessera::runtime::cuda {

/// What a turn computes beside what it reads, to be copied by its end.
struct NextBytes {
  Address at;
  std::int64_t bytes = 0;
};

/// A node that does what `computing` does, and then, in the same block, what `turn` does; its first argument
/// is the condition. What is in `next` does not leave the block if `computing` is all that writes it: the
/// first of a turn. Nothing if the work of `computing` is not for one block, or if it is no generated
/// kernel. REQUIRES that `turn` is a kernel of condition_source.h, which run in any number of warps.
[[nodiscard]] std::optional<PlanNode> joined_turn(const PlanNode& computing, const PlanNode& turn,
                                                  std::span<const NextBytes> next);

}  // namespace tessera::runtime::cuda
