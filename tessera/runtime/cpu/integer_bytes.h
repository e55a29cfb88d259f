// Integers that are close enough together to be bytes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace tessera::runtime::cpu {

/// What an integer is without `less`, as 32-bit integers wrap.
template <class Integer>
std::int32_t widened_without(Integer value, std::int32_t less) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(static_cast<std::int32_t>(value)) -
                                   static_cast<std::uint32_t>(less));
}

/// Copies integers without `less` as bytes, moved by a number that is a byte itself; nothing if there is no
/// such number.
template <class Byte, class Integer>
std::optional<Byte> to_bytes(std::span<const Integer> from, std::int32_t less, std::vector<Byte>& to) {
  using Limits = std::numeric_limits<Byte>;
  std::int32_t least = 0, most = 0;
  for (const Integer given : from) {
    const std::int32_t value = widened_without(given, less);
    least = std::min(least, value);
    most = std::max(most, value);
  }
  const std::int64_t lowest = std::int64_t{Limits::min()} - least,
                     highest = std::int64_t{Limits::max()} - most;
  const std::int64_t zero = std::clamp<std::int64_t>(0, std::min(lowest, highest), highest);
  if (lowest > highest || zero < Limits::min() || zero > Limits::max()) return std::nullopt;
  to.resize(from.size());
  for (std::size_t i = 0; i < from.size(); ++i)
    to[i] = static_cast<Byte>(widened_without(from[i], less) + static_cast<std::int32_t>(zero));
  return static_cast<Byte>(zero);
}

}  // namespace tessera::runtime::cpu
