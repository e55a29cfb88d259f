// Building texts: numbers in their shortest exact form, quoting, escaping, joining.
#pragma once

#include <charconv>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace tessera {

void append_text(std::string& out, std::string_view text);
void append_text(std::string& out, char c);
template <std::same_as<bool> T>  // a template, so that a pointer does not decay to bool
void append_text(std::string& out, T value) {
  out += value ? "true" : "false";
}
/// The shortest decimal form that reads back to the same bits; "inf", "-inf", "nan" for the others.
void append_text(std::string& out, double value);
void append_text(std::string& out, float value);
template <std::integral T>
requires(!std::same_as<T, bool> && !std::same_as<T, char>) void append_text(std::string& out, T value) {
  char buffer[24];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value);
  out.append(buffer, end.ptr);
}

/// All arguments as one text: cat("axis ", axis, " is outside [0, ", rank, ")").
template <class... Args>
[[nodiscard]] std::string cat(const Args&... args) {
  std::string out;
  (append_text(out, args), ...);
  return out;
}

/// `items` joined by `separator`; each goes through append_text.
template <class Range>
[[nodiscard]] std::string join(const Range& items, std::string_view separator) {
  std::string out;
  bool first = true;
  for (const auto& item : items) {
    if (!first) out += separator;
    first = false;
    append_text(out, item);
  }
  return out;
}

/// The text in double quotes, with quotes, backslashes and control characters escaped as JSON does.
[[nodiscard]] std::string quote(std::string_view text);
void append_quoted(std::string& out, std::string_view text);

/// The text with control characters (also those of terminals) shown as \xNN: for names that come from files.
[[nodiscard]] std::string printable(std::string_view text);

/// `text` cut to at most `limit` bytes with "…" at the cut, never inside a UTF-8 sequence.
[[nodiscard]] std::string shortened(std::string_view text, std::size_t limit);

/// Whether the bytes are valid UTF-8.
[[nodiscard]] bool is_valid_utf8(std::string_view text);

}  // namespace tessera
