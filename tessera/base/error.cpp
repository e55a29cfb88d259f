#include "tessera/base/error.h"

#include <array>

using namespace tessera;

std::string_view tessera::to_string(ErrorCode code) {
  static constexpr std::array<std::string_view, 11> names{
      "invalid_argument", "parse", "shape",  "not_found", "unsupported", "cycle", "limit",
      "memory",           "io",    "device", "internal"};
  return names.at(static_cast<std::size_t>(code));
}

std::string SourceSpan::to_text() const {
  std::string out = file;
  if (line != 0) {
    if (!out.empty()) out += ':';
    out += std::to_string(line);
    if (column != 0) out += ':' + std::to_string(column);
  }
  return out;
}

std::string Error::to_text() const {
  std::string out = at_.known() ? at_.to_text() + ": " + message_ : message_;
  for (const std::string& note : notes_) out += "\n  " + note;
  return out;
}
