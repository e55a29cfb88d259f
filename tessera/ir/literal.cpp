#include "tessera/ir/literal.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "tessera/base/text.h"
#include "tessera/ir/half.h"

using namespace tessera;
using namespace tessera::ir;

namespace {

constexpr char hex_digits[] = "0123456789abcdef";

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// The fields of an IEEE format: its sign is the highest bit, then come exponent and mantissa.
struct FloatLayout {
  int bits;  ///< of the mantissa
  int exponent_bits;

  [[nodiscard]] std::uint64_t mantissa() const { return (std::uint64_t{1} << bits) - 1; }
  [[nodiscard]] std::uint64_t infinity() const { return ((std::uint64_t{1} << exponent_bits) - 1) << bits; }
  [[nodiscard]] std::uint64_t quiet() const { return std::uint64_t{1} << (bits - 1); }
};
constexpr FloatLayout wide_layout{52, 11};

FloatLayout layout_of(Dtype dtype) {
  if (dtype == Dtype::f32) return {23, 8};
  return dtype == Dtype::f16 ? FloatLayout{10, 5} : FloatLayout{7, 8};
}

template <class T>
T load(const std::byte* from) {
  T out;
  std::memcpy(&out, from, sizeof out);
  return out;
}

double load_float(const std::byte* from, Dtype dtype) {
  switch (dtype) {
    case Dtype::f64:
      return load<double>(from);
    case Dtype::f32:
      return load<float>(from);
    case Dtype::f16:
      return f16_to_float(load<std::uint16_t>(from));
    default:
      return bf16_to_float(load<std::uint16_t>(from));
  }
}

std::int64_t load_integer(const std::byte* from, Dtype dtype) {
  switch (dtype) {
    case Dtype::i64:
    case Dtype::u64:
      return load<std::int64_t>(from);
    case Dtype::i32:
      return load<std::int32_t>(from);
    case Dtype::i16:
      return load<std::int16_t>(from);
    case Dtype::i8:
      return load<std::int8_t>(from);
    case Dtype::u32:
      return load<std::uint32_t>(from);
    case Dtype::u16:
      return load<std::uint16_t>(from);
    default:
      return load<std::uint8_t>(from);
  }
}

template <class T>
std::optional<std::int64_t> parse_as(std::string_view text) {
  T value{};
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc() || result.ptr != text.data() + text.size()) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

template <class T>
std::optional<T> parse_float_as(std::string_view text) {
  T value{};
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ptr != text.data() + text.size() || result.ec == std::errc::invalid_argument)
    return std::nullopt;
  // Out of range is both overflow, which is an error, and underflow, which rounds to what it rounds to.
  if (result.ec == std::errc::result_out_of_range) {
    const double wide = std::strtod(std::string(text).c_str(), nullptr);
    if (std::abs(wide) > 1) return std::nullopt;
    return static_cast<T>(wide);
  }
  return value;
}

}  // namespace

void tessera::ir::append_float(std::string& out, double value, Dtype dtype) {
  if (std::isnan(value)) {
    out += cat(to_string(dtype), ".bits(0x");
    const std::uint64_t bits = float_bits(value, dtype);
    for (auto digit = 2 * size_of(dtype); digit-- > 0;) out += hex_digits[(bits >> (4 * digit)) & 15];
    out += ')';
  } else if (std::isinf(value)) {
    out += cat(to_string(dtype), value < 0 ? ".neg_inf" : ".inf");
  } else if (dtype == Dtype::f64) {
    append_text(out, value);
  } else {
    append_text(out, static_cast<float>(value));
  }
}

void tessera::ir::append_escaped(std::string& out, std::string_view text, char quote) {
  out += quote;
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == quote || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte >= 0x7f) {
      out += "\\x";
      out += hex_digits[byte >> 4];
      out += hex_digits[byte & 15];
    } else {
      out += c;
    }
  }
  out += quote;
}

std::optional<std::string> tessera::ir::unescape(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
      continue;
    }
    if (++i == text.size()) return std::nullopt;
    if (text[i] == 'x') {
      const int high = i + 1 < text.size() ? hex_value(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? hex_value(text[i + 2]) : -1;
      if (high < 0 || low < 0) return std::nullopt;
      out += static_cast<char>(high * 16 + low);
      i += 2;
    } else if (text[i] == 'n' || text[i] == 't') {
      out += text[i] == 'n' ? '\n' : '\t';
    } else if (text[i] == '"' || text[i] == '`' || text[i] == '\\') {
      out += text[i];
    } else {
      return std::nullopt;
    }
  }
  return out;
}

bool tessera::ir::append_elements(std::string& out, Dtype dtype, std::span<const std::byte> data) {
  const std::size_t size = size_of(dtype);
  const std::size_t before = out.size();
  out += '[';
  for (std::size_t at = 0; at + size <= data.size(); at += size) {
    if (at != 0) out += ", ";
    const std::byte* element = data.data() + at;
    if (is_float(dtype)) {
      const double value = load_float(element, dtype);
      if (!std::isfinite(value)) {
        out.resize(before);
        return false;
      }
      append_float(out, value, dtype);
    } else if (dtype == Dtype::boolean) {
      const auto byte = std::to_integer<int>(*element);
      if (byte > 1) {
        out.resize(before);
        return false;
      }
      append_text(out, byte == 1);
    } else if (dtype == Dtype::u64) {
      append_text(out, load<std::uint64_t>(element));
    } else {
      append_text(out, load_integer(element, dtype));
    }
  }
  out += ']';
  return true;
}

void tessera::ir::append_hex(std::string& out, std::span<const std::byte> data) {
  out += "x\"";
  for (std::byte byte : data) {
    out += hex_digits[std::to_integer<int>(byte) >> 4];
    out += hex_digits[std::to_integer<int>(byte) & 15];
  }
  out += '"';
}

std::optional<std::vector<std::byte>> tessera::ir::parse_hex(std::string_view digits) {
  if (digits.size() % 2 != 0) return std::nullopt;
  std::vector<std::byte> out(digits.size() / 2);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const int high = hex_value(digits[2 * i]);
    const int low = hex_value(digits[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    out[i] = static_cast<std::byte>(high * 16 + low);
  }
  return out;
}

std::optional<double> tessera::ir::parse_float(std::string_view text, Dtype dtype) {
  if (dtype == Dtype::f64) return parse_float_as<double>(text);
  const auto value = parse_float_as<float>(text);
  if (!value) return std::nullopt;
  if (dtype == Dtype::f32) return *value;
  const float rounded =
      dtype == Dtype::f16 ? f16_to_float(float_to_f16(*value)) : bf16_to_float(float_to_bf16(*value));
  if (std::isinf(rounded)) return std::nullopt;
  return rounded;
}

std::optional<std::int64_t> tessera::ir::parse_integer(std::string_view text, Dtype dtype) {
  switch (dtype) {
    case Dtype::i64:
      return parse_as<std::int64_t>(text);
    case Dtype::i32:
      return parse_as<std::int32_t>(text);
    case Dtype::i16:
      return parse_as<std::int16_t>(text);
    case Dtype::i8:
      return parse_as<std::int8_t>(text);
    case Dtype::u8:
      return parse_as<std::uint8_t>(text);
    case Dtype::u16:
      return parse_as<std::uint16_t>(text);
    case Dtype::u32:
      return parse_as<std::uint32_t>(text);
    case Dtype::u64:
      return parse_as<std::uint64_t>(text);
    default:
      return std::nullopt;
  }
}

std::uint64_t tessera::ir::float_bits(double value, Dtype dtype) {
  const auto wide = std::bit_cast<std::uint64_t>(value);
  if (dtype == Dtype::f64) return wide;
  if (std::isnan(value)) {  // not by the processor, which would make a signalling NaN a quiet one
    const FloatLayout layout = layout_of(dtype);
    const std::uint64_t payload = (wide & wide_layout.mantissa()) >> (wide_layout.bits - layout.bits);
    const std::uint64_t sign = (wide >> 63) << (8 * size_of(dtype) - 1);
    return sign | layout.infinity() | (payload != 0 ? payload : layout.quiet());
  }
  if (dtype == Dtype::f32) return std::bit_cast<std::uint32_t>(static_cast<float>(value));
  return dtype == Dtype::f16 ? double_to_f16(value) : double_to_bf16(value);
}

double tessera::ir::float_from_bits(std::uint64_t bits, Dtype dtype) {
  if (dtype == Dtype::f64) return std::bit_cast<double>(bits);
  const FloatLayout layout = layout_of(dtype);
  const std::uint64_t sign = bits >> (8 * size_of(dtype) - 1);
  const std::uint64_t payload = bits & layout.mantissa();
  const bool is_nan = (bits & layout.infinity()) == layout.infinity() && payload != 0;
  if (is_nan)
    return std::bit_cast<double>(sign << 63 | wide_layout.infinity() |
                                 payload << (wide_layout.bits - layout.bits));
  if (dtype == Dtype::f32) return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  const auto half = static_cast<std::uint16_t>(bits);
  return dtype == Dtype::f16 ? f16_to_float(half) : bf16_to_float(half);
}

void tessera::ir::append_element_bytes(std::vector<std::byte>& out, Dtype dtype, double float_value,
                                       std::int64_t int_value) {
  std::uint64_t bits = static_cast<std::uint64_t>(int_value);
  if (is_float(dtype)) bits = float_bits(float_value, dtype);
  for (std::size_t i = 0; i < size_of(dtype); ++i) out.push_back(static_cast<std::byte>(bits >> (8 * i)));
}
