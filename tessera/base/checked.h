// Arithmetic that notices overflow. Every product of sizes in Tessera goes through it: a file or a caller can
// name any dimension, and a wrapped size is a buffer overrun.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>

namespace tessera {

/// The sum, or nothing if it does not fit.
template <std::integral T>
[[nodiscard]] constexpr std::optional<T> checked_add(T a, T b) {
  T out{};
  if (__builtin_add_overflow(a, b, &out)) return std::nullopt;
  return out;
}

/// The difference, or nothing if it does not fit.
template <std::integral T>
[[nodiscard]] constexpr std::optional<T> checked_sub(T a, T b) {
  T out{};
  if (__builtin_sub_overflow(a, b, &out)) return std::nullopt;
  return out;
}

/// The product, or nothing if it does not fit.
template <std::integral T>
[[nodiscard]] constexpr std::optional<T> checked_mul(T a, T b) {
  T out{};
  if (__builtin_mul_overflow(a, b, &out)) return std::nullopt;
  return out;
}

/// The product of all factors, or nothing if it does not fit. A zero among them makes the product 0 whatever
/// the others are, so that an empty tensor with one enormous dimension is legal.
[[nodiscard]] constexpr std::optional<std::int64_t> checked_product(std::span<const std::int64_t> factors) {
  for (std::int64_t factor : factors)
    if (factor == 0) return 0;
  std::int64_t product = 1;
  for (std::int64_t factor : factors)
    if (__builtin_mul_overflow(product, factor, &product)) return std::nullopt;
  return product;
}

/// a / b rounded towards minus infinity. REQUIRES b != 0; INT64_MIN / -1 wraps to INT64_MIN.
[[nodiscard]] constexpr std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  if (b == -1) return static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(a));
  const std::int64_t quotient = a / b;
  return quotient - ((a % b != 0) && ((a < 0) != (b < 0)) ? 1 : 0);
}

/// a - b * floor_div(a, b): has the sign of b. REQUIRES b != 0.
[[nodiscard]] constexpr std::int64_t floor_mod(std::int64_t a, std::int64_t b) {
  if (b == -1) return 0;
  const std::int64_t remainder = a % b;
  return remainder != 0 && ((remainder < 0) != (b < 0)) ? remainder + b : remainder;
}

}  // namespace tessera
