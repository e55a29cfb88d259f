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

struct IntegerRange {
  std::int32_t least = 0, most = 0;
};

/// That of integers without `less`, and of 0.
template <class Integer>
IntegerRange range_without(std::span<const Integer> from, std::int32_t less) {
  IntegerRange out;
  for (const Integer given : from) {
    const std::int32_t value = widened_without(given, less);
    out.least = std::min(out.least, value);
    out.most = std::max(out.most, value);
  }
  return out;
}
/// Bytes are compared as they are. Where some of them wrap without `less`, the range is all integers.
template <class Integer>
requires(sizeof(Integer) == 1) IntegerRange range_without(std::span<const Integer> from, std::int32_t less) {
  if (from.empty()) return {};
  Integer least = from[0], most = from[0];
  for (const Integer given : from) {
    least = std::min(least, given);
    most = std::max(most, given);
  }
  const std::int32_t low = widened_without(least, less), high = widened_without(most, less);
  using Limits = std::numeric_limits<std::int32_t>;
  if (low > high) return {Limits::min(), Limits::max()};
  return {std::min(low, 0), std::max(high, 0)};
}

/// Copies integers without `less` as bytes, moved by a number that is a byte itself; nothing if there is no
/// such number.
template <class Byte, class Integer>
std::optional<Byte> to_bytes(std::span<const Integer> from, std::int32_t less, std::vector<Byte>& to) {
  using Limits = std::numeric_limits<Byte>;
  const auto [least, most] = range_without(from, less);
  const std::int64_t lowest = std::int64_t{Limits::min()} - least,
                     highest = std::int64_t{Limits::max()} - most;
  const std::int64_t zero = std::clamp<std::int64_t>(0, std::min(lowest, highest), highest);
  if (lowest > highest || zero < Limits::min() || zero > Limits::max()) return std::nullopt;
  to.resize(from.size());
  // What is left of a byte when it wraps is the same whether it was made wider before or not.
  const auto moved_by =
      static_cast<std::uint8_t>(static_cast<std::uint32_t>(zero) - static_cast<std::uint32_t>(less));
  for (std::size_t i = 0; i < from.size(); ++i)
    to[i] = static_cast<Byte>(static_cast<std::uint8_t>(static_cast<std::uint8_t>(from[i]) + moved_by));
  return static_cast<Byte>(zero);
}

}  // namespace tessera::runtime::cpu
