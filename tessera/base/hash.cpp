#include "tessera/base/hash.h"

#include <cstring>

using namespace tessera;

std::string Hash128::to_hex() const {
  static constexpr char digits[] = "0123456789abcdef";
  std::string out(32, '0');
  for (int i = 0; i < 16; ++i) {
    out[static_cast<std::size_t>(15 - i)] = digits[(high >> (4 * i)) & 15];
    out[static_cast<std::size_t>(31 - i)] = digits[(low >> (4 * i)) & 15];
  }
  return out;
}

Hasher& Hasher::add_bytes(std::span<const std::byte> bytes) {
  add(bytes.size());
  std::size_t at = 0;
  // Words are read little-endian, so that the value is the same on every machine.
  const auto load = [&](std::size_t count) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, count);
    if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
    return word;
  };
  for (; at + 8 <= bytes.size(); at += 8) add(load(8));
  if (at < bytes.size()) add(load(bytes.size() - at));
  return *this;
}

Hash128 tessera::hash_text(std::string_view text) { return Hasher().add_text(text).finish(); }
