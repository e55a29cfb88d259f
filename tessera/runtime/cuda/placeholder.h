// Addresses that stand for those that are not known yet while programs are made: where memory overlaps, and
// how it is aligned, is seen by them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tessera/base/check.h"

namespace tessera::runtime::cuda {

/// Pieces of memory that an area can have.
inline constexpr std::uint64_t most_pieces = std::uint64_t{1} << 20;

/// Byte `byte` of piece `index` of an area. Areas are numbered up to 15; pieces of up to 1 TiB, more than any
/// device has, overlap neither each other nor those of other areas. REQUIRES that `index` is below
/// most_pieces.
[[nodiscard]] inline std::byte* placeholder_in(std::uint8_t area, std::uint64_t index, std::int64_t byte) {
  TESSERA_CHECK(area < 16 && index < most_pieces, "a piece of memory that has no place");
  return reinterpret_cast<std::byte*>((std::uint64_t{area} << 60) + (index << 40)) + byte;
}

/// The area of what the parts of one step have for themselves; those of plans are numbered from 1.
inline constexpr std::uint8_t step_scratch_area = 15;

}  // namespace tessera::runtime::cuda
