// How single values are written in the text form, and read back to the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/ir/dtype.h"

namespace tessera::ir {

/// Shortest decimal form that reads back exactly in `dtype`; "f32.inf", "f32.neg_inf", "f32.bits(0x…)" for
/// the rest.
void append_float(std::string& out, double value, Dtype dtype);

/// The text between two `quote` characters; quotes, backslashes, control characters and bytes that are no
/// UTF-8 are escaped (\n, \t, \xNN).
void append_escaped(std::string& out, std::string_view text, char quote);
/// The inverse, without the quotes. Nothing if an escape is wrong.
[[nodiscard]] std::optional<std::string> unescape(std::string_view text);

/// "[1.0, 2.0]"; false, and nothing written, if an element has no decimal form (NaN, infinities).
bool append_elements(std::string& out, Dtype dtype, std::span<const std::byte> data);
/// x"0000803f"
void append_hex(std::string& out, std::span<const std::byte> data);
/// The inverse of what stands between the quotes. Nothing if it is no hexadecimal.
[[nodiscard]] std::optional<std::vector<std::byte>> parse_hex(std::string_view digits);

/// A decimal number rounded to `dtype`. Nothing if the text is none, or too large for the type.
[[nodiscard]] std::optional<double> parse_float(std::string_view text, Dtype dtype);
/// An integer that fits `dtype`; u64 values keep their bits.
[[nodiscard]] std::optional<std::int64_t> parse_integer(std::string_view text, Dtype dtype);

/// The bits of a value in `dtype`, which is a float type. A NaN keeps sign and payload as far as they fit.
[[nodiscard]] std::uint64_t float_bits(double value, Dtype dtype);
/// The inverse: every bit of a NaN is kept.
[[nodiscard]] double float_from_bits(std::uint64_t bits, Dtype dtype);

/// Appends one element in the layout of `dtype`, from the value of an IntConst, FloatConst or BoolConst.
void append_element_bytes(std::vector<std::byte>& out, Dtype dtype, double float_value,
                          std::int64_t int_value);

}  // namespace tessera::ir
