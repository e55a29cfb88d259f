// An archive as a file: a header that says who wrote it, and the sections. docs/plan.md has the layout.
//
// A file is for the version that wrote it: what was made by another, is cut off or changed is refused with a
// reason.
#pragma once

#include <string>
#include <string_view>

#include "tessera/base/bytes.h"
#include "tessera/base/hash.h"
#include "tessera/base/result.h"
#include "tessera/plan/archive_reader.h"
#include "tessera/plan/archive_writer.h"

namespace tessera::plan::archive {

/// How files begin: a program, or a graph description.
inline constexpr std::string_view program_magic = "TSRPLAN\n", graph_magic = "TSRGRPH\n";

/// What a file holds.
struct FileForm {
  std::string_view magic;  ///< its first 8 bytes
  std::uint64_t version = 0;
  Hash128 schema;  ///< of what is written into it
};

/// The bytes of a file.
[[nodiscard]] std::string to_file(const Writer& writer, const FileForm& form);

/// A reader of a file of this form. What it gives keeps `bytes`.
[[nodiscard]] Result<Reader> open_file(const Bytes& bytes, const FileForm& form);

/// Writes bytes into a file whole; a failure leaves what was there.
[[nodiscard]] Result<void> write_archive(const std::string& path, std::string_view bytes);

/// Whether a file begins so. False if it cannot be read.
[[nodiscard]] bool begins_with(const std::string& path, std::string_view magic);

}  // namespace tessera::plan::archive
