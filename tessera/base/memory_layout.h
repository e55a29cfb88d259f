// Where values that live for a while lie in one block of memory. A place is used again only by a step that
// comes after every user of the old value: in the list, for those who run the steps one by one, or by a path
// of waits, for those who run independent steps side by side.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/base/step_order.h"

namespace tessera {

/// A value that needs memory while steps run.
struct LiveRange {
  std::uint32_t first = 0;           ///< the step that writes it, before all that read it
  std::vector<std::uint32_t> reads;  ///< the steps that use it after, ascending; may be empty
  std::uint64_t bytes = 0;

  [[nodiscard]] std::uint32_t last() const { return reads.empty() ? first : reads.back(); }
};

/// Sums stay at the largest number: sizes may come from files.
struct MemoryLayout {
  std::vector<std::uint64_t> offsets;  ///< of each range
  std::uint64_t bytes = 0;             ///< of the block
  std::uint64_t lower_bound = 0;       ///< most live bytes over the steps in the listed order
  std::uint64_t without_reuse = 0;     ///< if every value had its own place
};

inline constexpr std::uint64_t memory_alignment = 64;

/// Steps run as they are listed. Near linear while few values live at once.
[[nodiscard]] MemoryLayout lay_out(std::span<const LiveRange> ranges, std::size_t step_count);

/// A step waits only for those that `order` says.
[[nodiscard]] MemoryLayout lay_out(std::span<const LiveRange> ranges, std::size_t step_count,
                                   const StepOrder& order);

/// Sums and sizes that do not overflow.
[[nodiscard]] std::uint64_t saturating_sum(std::uint64_t a, std::uint64_t b);
[[nodiscard]] std::uint64_t aligned_bytes(std::uint64_t bytes);

}  // namespace tessera
