#include "tessera/ir/lexer.h"

#include <algorithm>
#include <charconv>

#include "tessera/base/text.h"
#include "tessera/ir/literal.h"

using namespace tessera;
using namespace tessera::ir;

bool Lexer::is_next(std::string_view token) {
  if (peek() != token[0] || text_.substr(at_, token.size()) != token) return false;
  return !is_word_start(token[0]) || !is_word_char(raw(token.size()));
}

bool Lexer::accept(std::string_view token) {
  if (!is_next(token)) return false;
  at_ += token.size();
  return true;
}

Result<void> Lexer::expect(std::string_view token) {
  if (accept(token)) return {};
  return expected(cat("'", token, "'"));
}

std::string_view Lexer::first_token(std::string_view piece) {
  const std::size_t begin = std::min(piece.find_first_not_of(' '), piece.size());
  piece.remove_prefix(begin);
  if (piece.empty()) return piece;
  std::size_t end = 1;
  if (is_word_start(piece[0]))
    while (end < piece.size() && is_word_char(piece[end])) ++end;
  return piece.substr(0, end);
}

Result<void> Lexer::expect_all(std::string_view piece) {
  for (;;) {
    const std::string_view token = first_token(piece);
    if (token.empty()) return {};
    TESSERA_TRY(expect(token));
    piece.remove_prefix(static_cast<std::size_t>(token.data() - piece.data()) + token.size());
  }
}

std::string_view Lexer::peek_word() {
  skip_space();
  if (!is_word_start(raw())) return {};
  std::size_t length = 1;
  while (is_word_char(raw(length))) ++length;
  return text_.substr(at_, length);
}

Result<std::string> Lexer::identifier(std::string_view what) {
  if (peek() == '`') return quoted('`');
  const std::string_view word = peek_word();
  if (word.empty()) return expected(what);
  at_ += word.size();
  return std::string(word);
}

Result<std::string> Lexer::quoted(char quote) {
  const std::size_t begin = at_++;
  std::size_t end = at_;
  while (end < text_.size() && text_[end] != quote && text_[end] != '\n') end += text_[end] == '\\' ? 2 : 1;
  if (end >= text_.size() || text_[end] != quote) return error_at(begin, cat("missing closing ", quote));
  auto value = unescape(text_.substr(at_, end - at_));
  if (!value) return error_at(begin, "wrong escape: expected \\n, \\t, \\\\, \\\", \\` or \\xNN");
  at_ = end + 1;
  return *std::move(value);
}

Result<std::string> Lexer::string() {
  if (peek() != '"') return expected("a string");
  return quoted('"');
}

std::string_view Lexer::number(bool& is_float) {
  skip_space();
  const std::size_t begin = at_;
  const auto digits = [&] {
    while (raw() >= '0' && raw() <= '9') ++at_;
  };
  if (raw() == '-') ++at_;
  digits();
  is_float = false;
  if (raw() == '.' && raw(1) >= '0' && raw(1) <= '9') {
    is_float = true;
    ++at_;
    digits();
  }
  const bool signed_exponent = (raw(1) == '+' || raw(1) == '-') && raw(2) >= '0' && raw(2) <= '9';
  if (at_ > begin && (raw() == 'e' || raw() == 'E') &&
      (signed_exponent || (raw(1) >= '0' && raw(1) <= '9'))) {
    is_float = true;
    at_ += 2;
    digits();
  }
  return text_.substr(begin, at_ - begin);
}

Result<std::int64_t> Lexer::integer(std::string_view what) {
  const std::size_t begin = next_offset();
  bool is_float = false;
  const std::string_view digits = number(is_float);
  std::int64_t value = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (digits.empty() || is_float || parsed.ec == std::errc::invalid_argument) {
    at_ = begin;
    return expected(what);
  }
  if (parsed.ec != std::errc())
    return error_at(begin, cat("integer ", shortened(digits, 40), " does not fit 64 bits"));
  return value;
}

Error Lexer::expected(std::string_view what) {
  skip_space();
  std::string got = "the end of the text";
  if (at_ < text_.size()) {
    const std::string_view word = peek_word();
    got = cat("'", printable(shortened(word.empty() ? text_.substr(at_, 1) : word, 40)), "'");
  }
  return error(cat("expected ", what, ", got ", got));
}
