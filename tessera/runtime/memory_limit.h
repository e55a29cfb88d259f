// How much memory there is, where that is known.
#pragma once

#include <cstdint>

namespace tessera::runtime {

/// A memory space that has so much and no more.
class LimitedMemory {
 public:
  virtual ~LimitedMemory() = default;
  /// All of it, in use or not.
  [[nodiscard]] virtual std::uint64_t total_bytes() const = 0;
};

}  // namespace tessera::runtime
