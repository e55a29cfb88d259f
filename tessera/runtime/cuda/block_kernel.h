// A kernel that one block computes, as a part of a larger source: all of its threads come to its begin and to
// its end.
#pragma once

#include "tessera/runtime/cuda/kernel_text.h"

namespace tessera::runtime::cuda {

/// What is around the text of a kernel.
struct BlockPlace {
  std::string prefix;                   ///< before the names of its arguments
  std::span<const std::string> arrays;  ///< texts of the addresses of its inputs and results
  /// Where the kernel reads input `counter`, it has the value of the variable `counter_name` instead.
  std::uint32_t counter = ~std::uint32_t{0};
  std::string_view counter_name = {};
  /// Of the block, if that is known: whole warps.
  unsigned threads = 0;
  /// Names of arrays of registers that have, for the points of a thread, what the array of an input or result
  /// would have; empty: the array has it. None: all have.
  std::span<const std::string> held = {};
};

/// What kernels of a block join their parts in: one side while some threads still read the other.
inline constexpr std::string_view block_parts =
    "__shared__ unsigned long long parts[64];\nunsigned side = 0;\n";

/// How many points each thread has of so many, as a power of two, if their texts stand one behind another.
/// Point i is thread i % threads's.
[[nodiscard]] unsigned points_of_thread(std::int64_t points, unsigned threads);

/// The text, in braces. Fails with code `unsupported` if it touches what is held, but not point by point.
/// REQUIRES `block_parts` around it, a block of whole warps, and a barrier behind it
/// before another thread reads what it stores. Slots of numbers are those of the kernel's function.
[[nodiscard]] Result<std::string> block_kernel(const BoundKernel& bound, SourceDraft& draft,
                                               BlockPlace place);

/// The same of a kernel of one number, which every thread has in the variable `name` behind it; nothing is
/// stored.
[[nodiscard]] Result<std::string> block_value(const BoundKernel& bound, SourceDraft& draft, BlockPlace place,
                                              std::string_view name);

/// Turns of a loop that are done before it is known whether they are to be done.
struct TurnsAhead {
  unsigned count = 0;  ///< a power of two, at most 32
  std::string turn;    ///< what follows the condition of each
};

/// The same over and over, with a turn behind each: the kernel's one number is whether there is a turn, and
/// `name` is whether that is true of all. Lanes join what they have of all of them together, which takes
/// little more time than to join one. REQUIRES a block of one warp, and `can_be_joined_at_once`.
[[nodiscard]] Result<std::string> block_values_ahead(const BoundKernel& bound, SourceDraft& draft,
                                                     BlockPlace place, std::string_view name,
                                                     const TurnsAhead& ahead);

/// Whether a warp computes the kernel in one pass that joins something, each thread with its points' texts
/// one behind another.
[[nodiscard]] bool can_be_joined_at_once(const BoundKernel& bound);

/// The threads that a block should have for the kernel if it runs over and over: each has several points,
/// since what a turn of a small block takes is its instructions and its barriers.
[[nodiscard]] unsigned block_threads(const BoundKernel& bound);

/// A loop whose turns are a kernel that carries each point for itself: input `first_carried` + k becomes
/// result k, element by element.
struct PointLoop {
  std::string head;  ///< "for (…) {"
  std::uint32_t first_carried = 0;
  std::vector<std::string> carried;  ///< texts of where it lies, before and after
};

/// The loop, with what it carries in registers. As above otherwise; the kernel reduces nothing.
[[nodiscard]] Result<std::string> point_loop(const BoundKernel& bound, SourceDraft& draft, BlockPlace place,
                                             const PointLoop& loop);

}  // namespace tessera::runtime::cuda
