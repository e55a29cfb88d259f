// The element types of tensors and scalars.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tessera/base/text.h"

namespace tessera::ir {

enum class Dtype : std::uint8_t { f64, f32, f16, bf16, i64, i32, i16, i8, u8, u16, u32, u64, boolean };

/// All of them, in the order of the enumeration.
[[nodiscard]] std::span<const Dtype> all_dtypes();

/// "f32", "i64", "bool", …
[[nodiscard]] std::string_view to_string(Dtype dtype);
/// The inverse of to_string.
[[nodiscard]] std::optional<Dtype> parse_dtype(std::string_view name);
using tessera::append_text;  // the overloads for texts and numbers, beside those of this room
inline void append_text(std::string& out, Dtype dtype) { out += to_string(dtype); }

/// Bytes of one element.
[[nodiscard]] constexpr std::size_t size_of(Dtype dtype) {
  constexpr std::uint8_t sizes[] = {8, 4, 2, 2, 8, 4, 2, 1, 1, 2, 4, 8, 1};
  return sizes[static_cast<std::size_t>(dtype)];
}

[[nodiscard]] constexpr bool is_float(Dtype dtype) { return dtype <= Dtype::bf16; }
[[nodiscard]] constexpr bool is_integer(Dtype dtype) {
  return dtype > Dtype::bf16 && dtype != Dtype::boolean;
}
[[nodiscard]] constexpr bool is_unsigned(Dtype dtype) {
  return dtype >= Dtype::u8 && dtype != Dtype::boolean;
}
[[nodiscard]] constexpr bool is_signed_integer(Dtype dtype) {
  return dtype >= Dtype::i64 && dtype <= Dtype::i8;
}

}  // namespace tessera::ir
