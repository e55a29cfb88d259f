// A set of up to 64 * W slots.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tessera::cover {

template <std::size_t W>
struct Mask {
  std::array<std::uint64_t, W> words{};

  static Mask of(std::span<const std::uint32_t> slots) {
    Mask out;
    for (std::uint32_t slot : slots) out.words[slot / 64] |= std::uint64_t{1} << (slot % 64);
    return out;
  }

  auto operator<=>(const Mask&) const = default;
  bool operator==(const Mask& other) const {
    std::uint64_t differing = 0;
    for (std::size_t i = 0; i < W; ++i) differing |= words[i] ^ other.words[i];
    return differing == 0;
  }
  [[nodiscard]] bool any() const {
    std::uint64_t all = 0;
    for (std::uint64_t word : words) all |= word;
    return all != 0;
  }
  [[nodiscard]] bool meets(const Mask& other) const {
    std::uint64_t common = 0;
    for (std::size_t i = 0; i < W; ++i) common |= words[i] & other.words[i];
    return common != 0;
  }
  Mask& operator|=(const Mask& other) {
    for (std::size_t i = 0; i < W; ++i) words[i] |= other.words[i];
    return *this;
  }
  [[nodiscard]] Mask operator|(const Mask& other) const { return Mask(*this) |= other; }
  /// Takes the slots of `other` out.
  Mask& operator-=(const Mask& other) {
    for (std::size_t i = 0; i < W; ++i) words[i] &= ~other.words[i];
    return *this;
  }
  [[nodiscard]] Mask operator-(const Mask& other) const { return Mask(*this) -= other; }
};

}  // namespace tessera::cover
