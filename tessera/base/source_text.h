// A text that is being read, with its name: turns a byte offset into line and column and draws the caret.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "tessera/base/error.h"

namespace tessera {

class SourceText {
 public:
  SourceText() = default;
  SourceText(std::string file, std::string text) : file_(std::move(file)), text_(std::move(text)) {}

  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] std::string_view text() const { return text_; }

  /// Line and column (in code points, from 1) of a byte offset. Costs a scan of the text: for errors only.
  [[nodiscard]] SourceSpan span_at(std::size_t offset) const;

  /// An error of code `parse` at `offset`, with the line and a caret as a note.
  [[nodiscard]] Error error_at(std::size_t offset, std::string message) const;

 private:
  std::string file_;
  std::string text_;
};

}  // namespace tessera
