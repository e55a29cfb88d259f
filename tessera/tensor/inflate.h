// Decompression of the deflate format (RFC 1951).
#pragma once

#include <span>
#include <vector>

#include "tessera/base/result.h"

namespace tessera::detail {

/// The data, which must be exactly `size` bytes. Nothing in `compressed` can make it read or write elsewhere.
[[nodiscard]] Result<std::vector<std::byte>> inflate(std::span<const std::byte> compressed, std::size_t size);

}  // namespace tessera::detail
