// The tags in the bytes of a pattern: what pattern.cpp writes and pattern_text.cpp reads.
#pragma once

#include <cstdint>

namespace tessera::stream {

enum class TypeKind : std::uint8_t { unknown, tensor_of_numbers, tensor, scalar, tuple };
enum class DimKind : std::uint8_t { number, expression };

}  // namespace tessera::stream
