// The end of a loop's turn in the kernel before it: a turn that is one kernel costs one node, and a loop
// whose turns are nothing but that kernel is one node in all.
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

/// How many turns a node makes.
enum class Turns : std::uint8_t {
  one,  ///< the body has other nodes, too
  all,  ///< the block goes on until the loop is over
};

/// A node that does what `computing` does, and then, in the same block, what `turn` does; its first argument
/// is the condition. What is in `next` does not leave the block if `computing` is all that writes it: the
/// first of a turn. Nothing if the work of `computing` is not for one block, or if it is no generated
/// kernel. REQUIRES that `turn` is a kernel of condition_source.h, which run in any number of warps.
[[nodiscard]] std::optional<PlanNode> joined_turn(const PlanNode& computing, const PlanNode& turn,
                                                  std::span<const NextBytes> next, Turns turns);

}  // namespace tessera::runtime::cuda
