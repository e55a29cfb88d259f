// What follows a matrix product or a convolution before its result is stored: a scale, a bias, an activation
// and the addition of another array.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tessera::runtime::cpu {

enum class Activation : std::uint8_t { none, relu, tanh, sigmoid, gelu_erf, gelu_tanh, silu, hard_swish };

/// What is added to the result: an array that does not overlap it, or what it held before.
enum class Residual : std::uint8_t { none, separate, in_destination };

enum class ResidualPlace : std::uint8_t { before_activation, after_activation };

/// destination = activation(scale * product + bias [+ residual]) [+ residual]
struct Epilogue {
  bool has_scale = false;
  bool has_bias = false;
  bool bias_of_rows = false;  ///< of a product: one number per row, not per column
  Activation activation = Activation::none;
  Residual residual = Residual::none;
  ResidualPlace place = ResidualPlace::after_activation;

  bool operator==(const Epilogue&) const = default;
  /// All of it in a number below 2^16.
  [[nodiscard]] constexpr std::uint64_t code() const {
    return std::uint64_t{has_scale} | std::uint64_t{has_bias} << 1 |
           static_cast<std::uint64_t>(activation) << 2 | static_cast<std::uint64_t>(residual) << 6 |
           static_cast<std::uint64_t>(place) << 8 | std::uint64_t{bias_of_rows} << 9;
  }
};

/// The values of an epilogue for one row of a product. A bias per row is one number, else an array.
struct EpilogueRow {
  float scale = 1.0f;
  const float* bias = nullptr;  ///< `count` numbers, or one if `bias_of_row`
  bool bias_of_row = false;
  const float* residual = nullptr;  ///< `count` numbers; may be the destination
};

/// Finishes `count` numbers of a product. `workspace` has room for `count` more.
void finish_row(const Epilogue& epilogue, const EpilogueRow& row, float* product, float* destination,
                float* workspace, std::size_t count);

}  // namespace tessera::runtime::cpu
