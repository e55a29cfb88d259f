// Mixing of 64-bit words for keys and colours that only find: whatever they find is compared.
#pragma once

#include <cstdint>

namespace tessera::stream {

/// Both halves of a 128-bit product, joined. mix(a, b) and mix(b, a) differ.
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a ^ 0x9e3779b97f4a7c15ULL) * (b ^ 0xd6e8feb86659fd93ULL);
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

}  // namespace tessera::stream
