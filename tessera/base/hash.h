// Tessera's own 128-bit hash: the same value in every process, on every machine, for ever.
//
// A hash finds, equality decides: nothing in Tessera trusts a hit before equality has confirmed it.
// Everything of variable length goes in with its length, so that ("ab","c") and ("a","bc") differ.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace tessera {

struct Hash128 {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  auto operator<=>(const Hash128&) const = default;
  /// 32 lower-case hexadecimal digits.
  [[nodiscard]] std::string to_hex() const;
};

/// Feeds words, bytes and other hashes into one Hash128. Values are order-sensitive.
class Hasher {
 public:
  constexpr Hasher() = default;
  /// `domain` separates uses: the same words under two domains hash differently.
  constexpr explicit Hasher(std::uint64_t domain) { add(domain); }

  constexpr Hasher& add(std::uint64_t word) {
    a_ = fold(a_ ^ word, 0x9e3779b97f4a7c15ULL);
    b_ = fold(b_ + word, 0xc2b2ae3d27d4eb4fULL) ^ std::rotl(a_, 29);
    return *this;
  }
  constexpr Hasher& add(const Hash128& hash) { return add(hash.high).add(hash.low); }
  /// Adds the length, then the bytes.
  Hasher& add_bytes(std::span<const std::byte> bytes);
  Hasher& add_text(std::string_view text) {
    return add_bytes(std::as_bytes(std::span(text.data(), text.size())));
  }

  [[nodiscard]] constexpr Hash128 finish() const {
    const std::uint64_t high = fold(a_ ^ std::rotl(b_, 17), 0xff51afd7ed558ccdULL);
    return {high, fold(b_ ^ high, 0xc4ceb9fe1a85ec53ULL) ^ a_};
  }

 private:
  /// Both halves of the 128-bit product, joined: every input bit reaches every output bit.
  static constexpr std::uint64_t fold(std::uint64_t x, std::uint64_t y) {
    __extension__ using Wide = unsigned __int128;
    const Wide product = static_cast<Wide>(x) * y;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  }

  std::uint64_t a_ = 0x243f6a8885a308d3ULL;
  std::uint64_t b_ = 0x13198a2e03707344ULL;
};

/// The hash of a text alone.
[[nodiscard]] Hash128 hash_text(std::string_view text);

}  // namespace tessera

template <>
struct std::hash<tessera::Hash128> {
  std::size_t operator()(const tessera::Hash128& value) const noexcept { return value.low; }
};
