// A folder of files that are nobody's business but the user's: nobody else can have written what is read, and
// nobody can make a program write elsewhere.
//
// It is believed only if no part of its path is a link (but those of the system, to others than the system's
// own user), if no folder above it can be written by others (unless only owners may remove what is in it),
// and if it is the user's own and closed to others. Files are opened below its descriptor and never through
// links.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tessera/base/open_file.h"
#include "tessera/base/result.h"

namespace tessera {

/// Any thread and any process may use a folder at the same time. Lives short: it holds the folder open.
class PrivateFolder {
 public:
  /// What is missing of the path is made, for the user alone, but `above` and what is above that (a home that
  /// is not there is not made). The error has code `unsupported` if the folder is there and not to be
  /// believed.
  [[nodiscard]] static Result<PrivateFolder> make(const std::string& path, const std::string& above = "/");
  /// The error has code `not_found` if there is none.
  [[nodiscard]] static Result<PrivateFolder> open(const std::string& path);

  /// The content of a file of at most so many bytes, which counts as used now; nothing if there is none, or
  /// if it is not the user's own.
  [[nodiscard]] std::optional<std::vector<std::byte>> read(const std::string& name,
                                                           std::size_t max_bytes) const;
  /// Written beside and put in its place at once: a failure leaves what was there.
  [[nodiscard]] Result<void> write(const std::string& name,
                                   std::span<const std::span<const std::byte>> parts) const;

  /// Removes the files that were not used for the longest time until the others have `max_bytes` at most, and
  /// what processes left behind that ended while they wrote. What is no file stays. Returns the bytes that
  /// are left.
  std::uint64_t shrink(std::uint64_t max_bytes) const;

 private:
  explicit PrivateFolder(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}
  static Result<PrivateFolder> reach(const std::string& path, std::optional<std::string> above);

  Descriptor descriptor_;
};

}  // namespace tessera
