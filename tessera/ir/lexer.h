// Characters and words of the text form, with the errors that name what was expected.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "tessera/base/result.h"
#include "tessera/base/source_text.h"

namespace tessera::ir {

/// Reads a text from the front. Space and comments (`#` to the end of the line) are skipped before every
/// token.
class Lexer {
 public:
  explicit Lexer(const SourceText& source) : source_(source), text_(source.text()) {}

  [[nodiscard]] std::size_t offset() const { return at_; }
  /// The offset of the next token.
  [[nodiscard]] std::size_t next_offset() {
    skip_space();
    return at_;
  }
  [[nodiscard]] bool at_end() {
    skip_space();
    return at_ == text_.size();
  }

  /// The next character after space, or 0 at the end.
  [[nodiscard]] char peek() {
    skip_space();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  /// The character `ahead` behind the current one, space counted.
  [[nodiscard]] char raw(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  void advance(std::size_t count = 1) { at_ += count; }

  /// Takes `c` if it is next.
  bool accept(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  /// Takes `token` if it is next. A word must end where the token ends.
  bool accept(std::string_view token);
  /// The same without taking it.
  [[nodiscard]] bool is_next(std::string_view token);
  Result<void> expect(std::string_view token);
  /// All tokens of a literal piece of a node's syntax, in order.
  Result<void> expect_all(std::string_view piece);
  /// The first token of such a piece.
  [[nodiscard]] static std::string_view first_token(std::string_view piece);

  /// The plain word that is next, without taking it; empty if there is none.
  [[nodiscard]] std::string_view peek_word();
  /// A word, or a name in backquotes.
  Result<std::string> identifier(std::string_view what);
  /// The content of a string in double quotes.
  Result<std::string> string();
  /// Digits with sign, point and exponent, as written. `is_float` is set if there is a point or an exponent.
  std::string_view number(bool& is_float);
  Result<std::int64_t> integer(std::string_view what);

  [[nodiscard]] Error error(std::string_view message) {
    return source_.error_at(next_offset(), std::string(message));
  }
  [[nodiscard]] Error error_at(std::size_t offset, std::string_view message) const {
    return source_.error_at(offset, std::string(message));
  }
  /// "expected WHAT, got NEXT"
  [[nodiscard]] Error expected(std::string_view what);

 private:
  void skip_space() {
    while (at_ < text_.size() && static_cast<unsigned char>(text_[at_]) <= '#') {
      const char c = text_[at_];
      if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
        ++at_;
      } else {
        return;
      }
    }
  }
  Result<std::string> quoted(char quote);

  const SourceText& source_;
  std::string_view text_;
  std::size_t at_ = 0;
};

[[nodiscard]] inline bool is_word_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
[[nodiscard]] inline bool is_word_char(char c) { return is_word_start(c) || (c >= '0' && c <= '9'); }

}  // namespace tessera::ir
