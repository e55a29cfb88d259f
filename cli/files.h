// Reading what is named on the command line.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "tessera/base/result.h"

namespace tessera::cli {

/// The content of a file, or of standard input for "-". Directories and what cannot be read are errors that
/// name the file.
[[nodiscard]] Result<std::string> read_text(const std::string& path);

/// Reads a file, or standard input for "-", line by line: a stream that has no end takes no memory.
class LineReader {
 public:
  /// Fails as read_text does.
  [[nodiscard]] static Result<LineReader> open(const std::string& path);
  /// The next line without its end; false behind the last. A line of more than 64 MiB is an error.
  [[nodiscard]] Result<bool> next(std::string& line);

 private:
  struct Close {
    void operator()(std::FILE* file) const {
      if (file != stdin) std::fclose(file);
    }
  };
  LineReader(std::FILE* file, std::string path) : file_(file), path_(std::move(path)) {}

  std::unique_ptr<std::FILE, Close> file_;
  std::string path_;
  std::uint64_t lines_ = 0;
};

/// What read_text says of a text of the IR. A file that is something else, a compiled plan, JSON or a model,
/// is an error that says what it is and which command takes it.
[[nodiscard]] Result<std::string> read_ir_text(const std::string& path);

/// The file as messages show it: "<stdin>" for "-", control characters escaped.
[[nodiscard]] std::string shown(const std::string& path);

/// An error if a file cannot be made there: what takes long to compute asks before, not after.
[[nodiscard]] Result<void> check_can_write(const std::string& path);

/// Writes a file, or standard output for "-". What cannot be written is an error that names the file.
[[nodiscard]] Result<void> write_text(const std::string& path, const std::string& text);

}  // namespace tessera::cli
