// A kernel that one block computes, as a part of a larger source: all of its threads come to its begin and to
// its end.
#pragma once

#include "tessera/runtime/cuda/kernel_text.h"

namespace tessera::runtime::cuda {

/// The text, in braces. Where the kernel reads input `counter`, it has the value of the variable
/// `counter_name` instead. REQUIRES `__shared__ unsigned long long parts[32]` around it, a block of whole
/// warps, and a barrier behind it. Slots of numbers are those of the kernel's function.
[[nodiscard]] Result<std::string> block_kernel(const BoundKernel& bound, SourceDraft& draft,
                                               std::string prefix, std::span<const std::string> arrays,
                                               std::uint32_t counter = ~std::uint32_t{0},
                                               std::string_view counter_name = {});

/// A loop whose turns are a kernel that carries each point for itself: input `first_carried` + k becomes
/// result k, element by element.
struct PointLoop {
  std::string head;  ///< "for (…) {"
  std::uint32_t first_carried = 0;
  std::vector<std::string> carried;  ///< texts of where it lies, before and after
};

/// The loop, with what it carries in registers. As above otherwise; the kernel reduces nothing.
[[nodiscard]] Result<std::string> point_loop(const BoundKernel& bound, SourceDraft& draft, std::string prefix,
                                             std::span<const std::string> arrays, std::uint32_t counter,
                                             std::string_view counter_name, const PointLoop& loop);

}  // namespace tessera::runtime::cuda
