// Where Tessera keeps files of its own, such as generated code.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tessera::runtime {

/// Of the whole process.
struct CacheOptions {
  /// An absolute folder; empty: nothing is kept. Without one: what TESSERA_CACHE says, a folder or "off",
  /// else $XDG_CACHE_HOME/tessera, else ~/.cache/tessera if there is such a home.
  std::optional<std::string> folder = {};
  /// The most bytes that files of one kind take: those that were not used for the longest time are removed.
  /// Without: TESSERA_CACHE_MB, else 256 MiB.
  std::optional<std::uint64_t> max_bytes = {};
};

/// For devices that are opened from now on. What is not said stays as it was said before. Thread-safe.
void set_cache_options(const CacheOptions& options);

}  // namespace tessera::runtime
