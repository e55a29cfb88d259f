// The two 16-bit float formats, as conversions: Tessera stores them and computes in wider types.
// Both directions keep NaN a NaN and round to nearest, ties to even.
#pragma once

#include <bit>
#include <cstdint>

namespace tessera::ir {

[[nodiscard]] constexpr float bf16_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

[[nodiscard]] constexpr std::uint16_t float_to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U)
    return static_cast<std::uint16_t>((bits >> 16) | 0x40);  // stay a NaN
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1)) >> 16);
}

[[nodiscard]] constexpr float f16_to_float(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000U) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1f;
  const std::uint32_t mantissa = half & 0x3ffU;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000U | mantissa << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
  // Subnormal: mantissa * 2^-24, exact in f32.
  const float magnitude = static_cast<float>(mantissa) * std::bit_cast<float>(103U << 23);
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
}

[[nodiscard]] constexpr std::uint16_t float_to_f16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U)
    return static_cast<std::uint16_t>(sign | 0x7e00U | ((magnitude >> 13) & 0x3ffU));
  if (magnitude >= 0x477ff000U) return static_cast<std::uint16_t>(sign | 0x7c00U);  // rounds to infinity
  if (magnitude < 0x38800000U) {
    // Subnormal result: adding 0.5 aligns the mantissa so that the FPU's own rounding does the work.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000U));
  }
  const std::uint32_t odd = (magnitude >> 13) & 1;
  return static_cast<std::uint16_t>(sign | ((magnitude - 0x38000000U + 0xfffU + odd) >> 13));
}

/// Rounds once: through float, a double just above a tie would be rounded twice.
[[nodiscard]] constexpr float double_to_float_for_half(double value) {
  const auto rounded = static_cast<float>(value);
  const auto bits = std::bit_cast<std::uint32_t>(rounded);
  if (static_cast<double>(rounded) == value || value != value) return rounded;
  if ((bits & 1) != 0) return rounded;  // round to odd: an inexact float keeps its last bit set
  const bool away = (static_cast<double>(rounded) < value) == (value > 0);
  return std::bit_cast<float>(away ? bits + 1 : bits - 1);
}

[[nodiscard]] constexpr std::uint16_t double_to_f16(double value) {
  return float_to_f16(double_to_float_for_half(value));
}
[[nodiscard]] constexpr std::uint16_t double_to_bf16(double value) {
  return float_to_bf16(double_to_float_for_half(value));
}

}  // namespace tessera::ir
