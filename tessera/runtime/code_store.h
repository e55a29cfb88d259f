// Object code in files, so that the next process needs no compiler: one file per key below a folder of the
// user's cache.
//
// A file is believed only if it is the user's own and whole, and if the key in it is the one asked for. Two
// processes may use one folder: files are written beside and take their place at once.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/result.h"

namespace tessera::runtime {

/// Thread-safe.
class CodeStore {
 public:
  explicit CodeStore(std::string folder) : folder_(std::move(folder)) {}

  /// "$XDG_CACHE_HOME/tessera/kernels", or below ~/.cache; empty if there is no such place.
  [[nodiscard]] static std::string default_folder(std::string_view what = "kernels");

  /// Whether there may be code: the folder is made when some is saved.
  [[nodiscard]] bool may_have_code() const;
  /// The code of a key; nothing if there is none, or none that can be believed.
  [[nodiscard]] std::optional<std::vector<std::byte>> load(std::string_view key) const;
  /// Fails if the folder cannot be made or written; what was there stays.
  [[nodiscard]] Result<void> save(std::string_view key, std::span<const std::byte> code) const;
  /// Where the code of a key is.
  [[nodiscard]] std::string path_of(std::string_view key) const;

 private:
  std::string folder_;
};

}  // namespace tessera::runtime
