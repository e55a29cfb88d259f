// The one error type of Tessera: what went wrong, where the caller stood, and what was going on.
//
// Inside the library errors travel in Result<T> (result.h). The C++ and Python faces throw `Exception`, the C
// face returns a code; each carries this same Error. Messages are lower case, have no full stop, name the
// value that is wrong and what was expected instead.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

/// What kind of failure an Error is. The C API maps each to one number.
enum class ErrorCode : std::uint8_t {
  invalid_argument,  ///< the caller passed something the contract forbids
  parse,             ///< a text or a file is not in the expected form
  shape,             ///< shapes or dtypes do not agree
  not_found,         ///< a name, a file or an id does not exist
  unsupported,       ///< legal, but this build or device cannot do it
  cycle,             ///< a graph that must be acyclic is not
  limit,             ///< a budget (size, depth, time, iterations) was hit
  memory,            ///< memory could not be had
  io,                ///< the operating system refused a file operation
  device,            ///< a device or a foreign library failed
  internal,          ///< an invariant of Tessera itself is broken
};

/// The code as a word: "invalid_argument", "parse", …
std::string_view to_string(ErrorCode code);

/// A place in a source: the caller's file, a parsed text, a model. Line and column count from 1; 0 is
/// unknown.
struct SourceSpan {
  std::string file;
  std::uint32_t line = 0;
  std::uint32_t column = 0;

  bool operator==(const SourceSpan&) const = default;
  [[nodiscard]] bool known() const { return !file.empty() || line != 0; }
  /// "file:line:column" with the unknown parts left out.
  [[nodiscard]] std::string to_text() const;
};

class [[nodiscard]] Error {
 public:
  Error(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}
  Error(ErrorCode code, std::string message, SourceSpan at)
      : code_(code), message_(std::move(message)), at_(std::move(at)) {}

  [[nodiscard]] ErrorCode code() const { return code_; }
  [[nodiscard]] const std::string& message() const { return message_; }
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }
  [[nodiscard]] const SourceSpan& span() const { return at_; }

  /// Adds what was going on, innermost first: "inferring the shape of 'sum'".
  Error&& note(std::string text) && {
    notes_.push_back(std::move(text));
    return std::move(*this);
  }
  /// Sets the place if none is known yet: the innermost place wins.
  Error&& at(SourceSpan span) && {
    if (!at_.known()) at_ = std::move(span);
    return std::move(*this);
  }

  /// "file:line:column: message" and one indented line per note.
  [[nodiscard]] std::string to_text() const;

 private:
  ErrorCode code_;
  std::string message_;
  SourceSpan at_;
  std::vector<std::string> notes_;
};

/// What the C++ face throws. Also thrown by TESSERA_CHECK inside the library, with code `internal`.
class Exception : public std::exception {
 public:
  explicit Exception(Error error) : error_(std::move(error)), text_(error_.to_text()) {}
  [[nodiscard]] const Error& error() const { return error_; }
  [[nodiscard]] const char* what() const noexcept override { return text_.c_str(); }

 private:
  Error error_;
  std::string text_;
};

}  // namespace tessera
