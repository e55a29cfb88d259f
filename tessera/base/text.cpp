#include "tessera/base/text.h"

#include <array>
#include <cmath>

using namespace tessera;

namespace {

template <class T>
void append_float(std::string& out, T value) {
  if (std::isnan(value)) {
    out += std::signbit(value) ? "-nan" : "nan";
    return;
  }
  if (std::isinf(value)) {
    out += value < 0 ? "-inf" : "inf";
    return;
  }
  std::array<char, 40> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  const std::string_view digits(buffer.data(), static_cast<std::size_t>(end.ptr - buffer.data()));
  out += digits;
  if (digits.find_first_of(".e") == std::string_view::npos) out += ".0";
}

constexpr char hex_digits[] = "0123456789abcdef";

/// Length of the UTF-8 sequence at the front of `text`, or 0 if it is not one.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const std::size_t length = first < 0x80   ? 1
                             : first < 0xc2 ? 0
                             : first < 0xe0 ? 2
                             : first < 0xf0 ? 3
                             : first < 0xf5 ? 4
                                            : 0;
  if (length == 0 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  if (length == 3 && first == 0xe0 && byte(1) < 0xa0) return 0;  // overlong
  if (length == 3 && first == 0xed && byte(1) > 0x9f) return 0;  // surrogate
  if (length == 4 && first == 0xf0 && byte(1) < 0x90) return 0;  // overlong
  if (length == 4 && first == 0xf4 && byte(1) > 0x8f) return 0;  // above U+10FFFF
  return length;
}

}  // namespace

void tessera::append_text(std::string& out, std::string_view text) { out += text; }
void tessera::append_text(std::string& out, char c) { out += c; }
void tessera::append_text(std::string& out, double value) { append_float(out, value); }
void tessera::append_text(std::string& out, float value) { append_float(out, value); }

void tessera::append_quoted(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const auto c = static_cast<unsigned char>(text.front());
    if (c == '"' || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c < 0x20 || c == 0x7f || length == 0) {
      out += "\\u00";  // a byte that is no UTF-8 is shown as the code point of the same value
      out += hex_digits[c >> 4];
      out += hex_digits[c & 15];
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  out += '"';
}

std::string tessera::quote(std::string_view text) {
  std::string out;
  append_quoted(out, text);
  return out;
}

std::string tessera::printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const auto c = static_cast<unsigned char>(text.front());
    // U+0080..U+009F are control characters of terminals too.
    const bool c1_control = length == 2 && c == 0xc2 && static_cast<unsigned char>(text[1]) < 0xa0;
    if (c < 0x20 || c == 0x7f || length == 0 || c1_control) {
      for (char byte : text.substr(0, length == 0 ? 1 : length)) {
        out += "\\x";
        out += hex_digits[static_cast<unsigned char>(byte) >> 4];
        out += hex_digits[static_cast<unsigned char>(byte) & 15];
      }
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

std::string tessera::shortened(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) return std::string(text);
  while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xc0) == 0x80) --limit;
  return std::string(text.substr(0, limit)) + "…";
}

bool tessera::is_valid_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}
