// Files as bytes: mapped for reading, written whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "tessera/base/bytes.h"
#include "tessera/base/result.h"

namespace tessera {

/// The content of a file that the user names (open_file.h), mapped into memory; pages are read when they are
/// touched. Fails for directories, devices, pipes and what cannot be read, naming the file.
[[nodiscard]] Result<Bytes> map_file(const std::string& path);

/// Who may use a file that is written.
enum class FileUsers : std::uint8_t {
  as_usual,    ///< who could use it before; of a new one, who the mask of the process allows
  user_alone,  ///< nobody but the user
};

/// Writes a file whole: into a new file beside it that takes its place at the end, so that a failure leaves
/// the old content.
[[nodiscard]] Result<void> write_file(const std::string& path,
                                      std::span<const std::span<const std::byte>> parts,
                                      FileUsers users = FileUsers::as_usual);

}  // namespace tessera
