// Files as bytes: mapped for reading, written whole.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "tessera/base/bytes.h"
#include "tessera/base/result.h"

namespace tessera {

/// The content of a regular file, mapped into memory; pages are read when they are touched. Fails for
/// directories, devices, pipes and what cannot be read, naming the file.
[[nodiscard]] Result<Bytes> map_file(const std::string& path);

/// Writes a file whole: into a new file beside it that takes its place at the end, so that a failure leaves
/// the old content.
[[nodiscard]] Result<void> write_file(const std::string& path,
                                      std::span<const std::span<const std::byte>> parts);

}  // namespace tessera
