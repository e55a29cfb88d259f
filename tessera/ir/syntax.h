// The text form of a node, taken apart at compile time. Printer and parser both follow it, so that what one
// writes the other reads.
//
//   "if $condition with ?([$dims])($captures) $then_body else $else_body"
//
//   $name      the field of that name
//   ?(…)       only there if the field inside it is not empty
//   \n \t \b   a new line, and one level of indentation more or less from here on
//   else       literal text
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "tessera/base/check.h"
#include "tessera/ir/nodes.h"

namespace tessera::ir {

struct SyntaxPiece {
  enum class Kind : std::uint8_t { literal, field, group_begin, group_end, newline, indent, dedent };
  Kind kind = Kind::literal;
  std::uint8_t field = 0;  ///< index of the field; for group_begin, of the field inside
  std::string_view text;
};

struct Syntax {
  std::array<SyntaxPiece, 24> pieces{};
  std::size_t size = 0;

  [[nodiscard]] constexpr const SyntaxPiece* begin() const { return pieces.data(); }
  [[nodiscard]] constexpr const SyntaxPiece* end() const { return pieces.data() + size; }
};

/// A node type that has a syntax of its own. The others are atoms and operators, which printer and parser
/// know.
template <class N>
concept HasSyntax = requires {
  N::syntax;
};

namespace detail {

template <class N>
constexpr std::uint8_t field_index(std::string_view name) {
  std::uint8_t found = 255;
  std::uint8_t index = 0;
  std::apply(
      [&](const auto&... field) { ((field.name == name ? void(found = index) : void(), ++index), ...); },
      N::fields());
  return found;
}

constexpr bool is_name_char(char c) { return (c >= 'a' && c <= 'z') || c == '_'; }

template <class N>
constexpr Syntax parse_syntax() {
  using Kind = SyntaxPiece::Kind;
  const std::string_view text = N::syntax;
  Syntax out;
  std::size_t group = text.size();  // the piece that opened the group we are in
  const auto add = [&](Kind kind, std::uint8_t field, std::string_view piece) {
    out.pieces[out.size++] = {kind, field, piece};
  };
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '$') {
      std::size_t end = at + 1;
      while (end < text.size() && is_name_char(text[end])) ++end;
      const std::uint8_t index = field_index<N>(text.substr(at + 1, end - at - 1));
      add(Kind::field, index, {});
      if (group < text.size()) out.pieces[group].field = index;
      at = end;
    } else if (text.substr(at, 2) == "?(") {
      group = out.size;
      add(Kind::group_begin, 0, {});
      at += 2;
    } else if (text[at] == ')' && group < text.size()) {
      group = text.size();
      add(Kind::group_end, 0, {});
      ++at;
    } else if (text[at] == '\n' || text[at] == '\t' || text[at] == '\b') {
      add(text[at] == '\n' ? Kind::newline : text[at] == '\t' ? Kind::indent : Kind::dedent, 0, {});
      ++at;
    } else {
      std::size_t end = at + 1;
      while (end < text.size() && std::string_view("$?\n\t\b").find(text[end]) == std::string_view::npos &&
             !(text[end] == ')' && group < text.size()))
        ++end;
      add(Kind::literal, 0, text.substr(at, end - at));
      at = end;
    }
  }
  return out;
}

}  // namespace detail

template <HasSyntax N>
inline constexpr Syntax syntax_of = detail::parse_syntax<N>();

/// The word a node's text begins with ("if", "tuple"), or nothing if it begins with a field.
template <HasSyntax N>
constexpr std::string_view leading_word() {
  const SyntaxPiece& first = *syntax_of<N>.begin();
  if (first.kind != SyntaxPiece::Kind::literal) return {};
  std::size_t end = 0;
  while (end < first.text.size() && detail::is_name_char(first.text[end])) ++end;
  return first.text.substr(0, end);
}

/// Words that cannot be the plain name of a variable or an op; such a name is written in backquotes.
[[nodiscard]] bool is_reserved_word(std::string_view word);

}  // namespace tessera::ir
