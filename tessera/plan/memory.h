// Where temporary values lie in one block of memory. A place is used again only by a step that comes after
// every reader of the old value: after it by a path in the graph, or, for a runtime that runs the steps one
// by one, in the list.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tessera::plan {

/// A value that needs memory while steps run.
struct Lifetime {
  std::uint32_t first = 0;           ///< the step that writes it
  std::vector<std::uint32_t> reads;  ///< the steps that read it, ascending; may be empty
  std::int64_t bytes = 0;
};

enum class StepOrder : std::uint8_t {
  listed,   ///< one step after the other, as they are listed
  by_path,  ///< a step waits only for those it depends on
};

struct MemoryLayout {
  std::vector<std::int64_t> offsets;  ///< of each lifetime
  std::int64_t bytes = 0;             ///< of the block
  std::int64_t lower_bound = 0;       ///< most live bytes over the steps in the listed order
  std::int64_t without_reuse = 0;     ///< if every value had its own place
};

inline constexpr std::int64_t memory_alignment = 64;

/// `before` has for each step the steps it waits for; used for by_path only.
[[nodiscard]] MemoryLayout lay_out(std::span<const Lifetime> lifetimes, std::size_t step_count,
                                   StepOrder order, std::span<const std::vector<std::uint32_t>> before = {});

}  // namespace tessera::plan
