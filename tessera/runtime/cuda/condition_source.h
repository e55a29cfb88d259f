// Kernels that decide: which body of a conditional node runs, and whether a loop goes on.
#pragma once

#include <optional>
#include <span>

#include "tessera/ir/function.h"
#include "tessera/op/array.h"
#include "tessera/runtime/cuda/launch.h"

namespace tessera::runtime::cuda {

/// Bytes that a loop carries from one turn to the next, copied by the kernel that decides.
struct CarriedBytes {
  std::size_t value = 0;  ///< which of those that are carried
  std::int64_t bytes = 0;
  std::uint32_t width = 1;  ///< of one access: 16, 4 or 1; it divides the bytes

  bool operator==(const CarriedBytes&) const = default;
};

/// Where a source that ends a turn says what it needs that the turn computes; what stands before it does not.
inline constexpr std::string_view computed_mark = "  // What the turn computes is there from here on.\n";
/// How such a source ends: one thread says whether there is another turn.
inline constexpr std::string_view decided_mark = "  cudaGraphSetConditional(condition, again ? 1 : 0);\n";

// What `at` holds decides as a number: an integer is itself, a float 1 unless it is 0.

/// `choose(condition, at)`: body 0 if the number is not 0, else body 1.
[[nodiscard]] SourceRef branch_source(ir::Dtype flag);

/// `choose(condition, at, count)`: the body of that number; what is outside is the last one.
[[nodiscard]] SourceRef choice_source(ir::Dtype index);

/// `turn(condition, at, turns, is_first, limit, status, (to, from)…)` of a `while`, where `at` holds whether
/// it goes on. `turns` counts those that are over; if it would go on after `limit` of them, that is noted.
[[nodiscard]] SourceRef while_source(ir::Dtype flag, std::span<const CarriedBytes> carried);

/// The same of a `for`, where `at` holds how many turns it has: `turn(condition, at, turns, is_first, (to,
/// from)…)`.
[[nodiscard]] SourceRef for_source(ir::Dtype count, std::span<const CarriedBytes> carried);

/// The same of a `for` with a limit: `turn(condition, at, turns, is_first, limit, status, index)`. More turns
/// than the limit are noted, and none is made. `index`, of that dtype, gets the number of the turn that
/// begins; without a dtype there is none. REQUIRES that it is no 16-bit float and no boolean.
[[nodiscard]] SourceRef limited_for_source(ir::Dtype count, std::optional<ir::Dtype> index);

/// The end of a turn of a `while` that finds out itself whether it goes on, by its condition on these inputs,
/// the first of which are those that the turn computed. The results of the program are the turns, the status
/// and what is carried; its first argument is the condition of the node. Fails with code `unsupported` if the
/// condition is no kernel, or none for one block.
[[nodiscard]] Result<StepProgram> checking_turn(const ir::Function& condition,
                                                std::span<const op::Array> inputs, std::int64_t limit,
                                                std::span<const CarriedBytes> carried);

/// The threads of a block that copies these.
[[nodiscard]] std::uint32_t turn_threads(std::span<const CarriedBytes> carried);

}  // namespace tessera::runtime::cuda
