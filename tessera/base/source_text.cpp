#include "tessera/base/source_text.h"

#include <algorithm>

#include "tessera/base/text.h"

using namespace tessera;

namespace {

constexpr std::size_t excerpt_bytes = 60;  // on either side of the caret: a line may be a megabyte long

bool starts_code_point(char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }

std::size_t line_start(std::string_view text, std::size_t offset) {
  const std::size_t newline = offset == 0 ? std::string_view::npos : text.rfind('\n', offset - 1);
  return newline == std::string_view::npos ? 0 : newline + 1;
}

}  // namespace

SourceSpan SourceText::span_at(std::size_t offset) const {
  offset = std::min(offset, text_.size());
  const auto begin = text_.begin();
  const auto at = begin + static_cast<std::ptrdiff_t>(offset);
  const auto start = begin + static_cast<std::ptrdiff_t>(line_start(text_, offset));
  const auto line = static_cast<std::uint32_t>(1 + std::count(begin, start, '\n'));
  return {file_, line, static_cast<std::uint32_t>(1 + std::count_if(start, at, starts_code_point))};
}

Error SourceText::error_at(std::size_t offset, std::string message) const {
  offset = std::min(offset, text_.size());
  const std::size_t start = line_start(text_, offset);
  const std::size_t end = std::min(text_.find('\n', offset), text_.size());
  std::size_t from = std::max(start, offset - std::min(offset, excerpt_bytes));
  while (from < offset && !starts_code_point(text_[from])) ++from;
  const std::size_t to = std::min(end, offset + excerpt_bytes);

  const std::string before = printable(std::string_view(text_).substr(from, offset - from));
  std::string excerpt = before + printable(std::string_view(text_).substr(offset, to - offset));
  const auto width = static_cast<std::size_t>(std::count_if(before.begin(), before.end(), starts_code_point));
  return Error(ErrorCode::parse, std::move(message), span_at(offset))
      .note(std::move(excerpt))
      .note(std::string(width, ' ') + "^");
}
