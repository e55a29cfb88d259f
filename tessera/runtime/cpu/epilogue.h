// What follows a matrix product or a convolution before its result is stored: a scale, a bias, an activation
// and the addition of another array.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace tessera::runtime::cpu {

enum class Activation : std::uint8_t {
  none,
  relu,
  tanh,
  sigmoid,
  gelu_erf,
  gelu_tanh,
  silu,
  hard_swish,
  leaky_relu,
  clip,
  by_card  ///< Epilogue::function
};

class EpilogueFunction;

/// Whether it is computed by a function (exp, tanh, erf), with what that loses.
[[nodiscard]] constexpr bool is_function(Activation activation) {
  return activation == Activation::tanh || activation == Activation::sigmoid ||
         activation == Activation::gelu_erf || activation == Activation::gelu_tanh ||
         activation == Activation::silu || activation == Activation::by_card;
}

/// Whether it is computed here also behind a product of oneDNN's: by its formula nothing would be left of a
/// number far below 0, or it has none.
[[nodiscard]] constexpr bool is_own_activation(Activation activation) {
  return activation == Activation::gelu_erf || activation == Activation::gelu_tanh ||
         activation == Activation::by_card;
}

/// What is added to the result: an array that does not overlap it, or what it held before.
enum class Residual : std::uint8_t { none, separate, in_destination };

enum class ResidualPlace : std::uint8_t { before_activation, after_activation };

/// destination = activation(scale * product + bias [+ residual]) [+ residual]
/// Where the product is kept, it is a result, too, and only a scale and a separate residual follow it.
struct Epilogue {
  bool has_scale = false;
  bool has_bias = false;
  bool bias_of_rows = false;  ///< of a product: one number per row, not per column
  bool keeps_product = false;
  Activation activation = Activation::none;
  /// Of leaky_relu: the slope below 0; of clip: the least and the most; by card: the operands behind the first.
  float alpha = 0, beta = 0;
  EpilogueFunction* function = nullptr;
  Residual residual = Residual::none;
  ResidualPlace place = ResidualPlace::after_activation;

  bool operator==(const Epilogue&) const = default;
  /// A number for all of it but the function; below 2^16 without alpha and beta, with which different ones may
  /// have the same.
  [[nodiscard]] constexpr std::uint64_t code() const {
    const std::uint64_t numbers = std::uint64_t{std::bit_cast<std::uint32_t>(alpha)} << 16 ^
                                  std::uint64_t{std::bit_cast<std::uint32_t>(beta)} << 32;
    return numbers | std::uint64_t{has_scale} | std::uint64_t{has_bias} << 1 |
           static_cast<std::uint64_t>(activation) << 2 | static_cast<std::uint64_t>(residual) << 6 |
           static_cast<std::uint64_t>(place) << 8 | std::uint64_t{bias_of_rows} << 9 |
           std::uint64_t{keeps_product} << 10;
  }
};

/// The values of an epilogue for one row of a product. A bias per row is one number, else an array.
struct EpilogueRow {
  float scale = 1.0f;
  const float* bias = nullptr;  ///< `count` numbers, or one if `bias_of_row`
  bool bias_of_row = false;
  const float* residual = nullptr;  ///< `count` numbers; may be the destination
};

/// Applies the activation to `count` numbers, then adds `residual` to them if it is not null.
void finish_in_place(const Epilogue& epilogue, float* x, const float* residual, std::size_t count);

/// Finishes `count` numbers of a product. `workspace` has room for `count` more.
void finish_row(const Epilogue& epilogue, const EpilogueRow& row, float* product, float* destination,
                float* workspace, std::size_t count);

}  // namespace tessera::runtime::cpu
