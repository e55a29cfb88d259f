// Arrays for tests of matrix products and convolutions, and the cards' reference for them.
#pragma once

#include <gtest/gtest.h>

#include <random>

#include "tessera/runtime/cpu/matmul.h"
#include "tests/support/op_call.h"

namespace tessera::fixture {

using runtime::cpu::Activation;
using runtime::cpu::Epilogue;
using runtime::cpu::Residual;
using runtime::cpu::ResidualPlace;

/// Numbers from -1 to 1.
inline std::vector<float> random_floats(std::int64_t count, std::uint32_t seed) {
  std::mt19937 source(seed);
  std::uniform_real_distribution<float> from(-1.0f, 1.0f);
  std::vector<float> out(static_cast<std::size_t>(count));
  for (float& value : out) value = from(source);
  return out;
}

inline op::HostTensor f32_tensor(op::Extents shape, const std::vector<float>& values) {
  return op::HostTensor::of<float>(ir::Dtype::f32, std::move(shape), values);
}

inline op::HostTensor activated(const Epilogue& epilogue, const op::HostTensor& x) {
  switch (epilogue.activation) {
    case Activation::none:
      return x;
    case Activation::relu:
      return call("relu", {x});
    case Activation::tanh:
      return call("tanh", {x});
    case Activation::sigmoid:
      return call("sigmoid", {x});
    case Activation::gelu_erf:
      return call("gelu", {x});
    case Activation::gelu_tanh:
      return call("gelu_tanh", {x});
    case Activation::silu:
      return call("silu", {x});
    case Activation::hard_swish:
      return call("hard_swish", {x});
    case Activation::leaky_relu:
      return call("leaky_relu", {x, f32_tensor({}, {epilogue.alpha})});
    case Activation::clip:
      return call("clip", {x, f32_tensor({}, {epilogue.alpha}), f32_tensor({}, {epilogue.beta})});
    case Activation::by_card:
      return call("elu", {x, f32_tensor({}, {epilogue.alpha})});
  }
  return x;
}

/// The epilogue by the cards. `bias` broadcasts against the product.
inline op::HostTensor finished(const Epilogue& epilogue, op::HostTensor y, double scale,
                               const op::HostTensor& bias, const op::HostTensor& residual) {
  const bool has_residual = epilogue.residual != Residual::none;
  if (epilogue.has_scale) y = call("mul", {y, f32_tensor({}, {static_cast<float>(scale)})});
  if (epilogue.has_bias) y = call("add", {y, bias});
  if (has_residual && epilogue.place == ResidualPlace::before_activation) y = call("add", {y, residual});
  y = activated(epilogue, y);
  if (has_residual && epilogue.place == ResidualPlace::after_activation) y = call("add", {y, residual});
  return y;
}

/// The largest difference; 0 for no elements, infinity if one is not a number.
inline double largest_difference(std::span<const float> a, std::span<const float> b) {
  double out = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (!(difference <= out)) out = std::isnan(difference) ? HUGE_VAL : difference;
  }
  return out;
}

/// Whether the library is here; a test that needs it is skipped otherwise.
inline bool has_onednn() { return runtime::cpu::OneDnn::open().ok(); }

}  // namespace tessera::fixture
