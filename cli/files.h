// Reading what is named on the command line.
#pragma once

#include <string>

#include "tessera/base/result.h"

namespace tessera::cli {

/// The content of a file, or of standard input for "-". Directories and what cannot be read are errors that
/// name the file.
[[nodiscard]] Result<std::string> read_text(const std::string& path);

/// The same of a text of the IR. A file that is something else, a compiled plan, JSON or a model, is an error
/// that says what it is and which command takes it.
[[nodiscard]] Result<std::string> read_ir_text(const std::string& path);

/// The file as messages show it: "<stdin>" for "-", control characters escaped.
[[nodiscard]] std::string shown(const std::string& path);

/// Writes a file, or standard output for "-". What cannot be written is an error that names the file.
[[nodiscard]] Result<void> write_text(const std::string& path, const std::string& text);

}  // namespace tessera::cli
