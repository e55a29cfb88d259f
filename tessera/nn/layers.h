// Layers are functions of tensors; what they learn is passed in. layer_norm, conv and the others of the op
// catalogue need nothing more and are used as they are.
#pragma once

#include <cstdint>

#include "tessera/nn/parameters.h"
#include "tessera/tensor/create.h"
#include "tessera/tensor/ops.h"

namespace tessera::nn {

using tessera::layer_norm;

/// x @ weight + bias: x [..., in], weight [in, out], bias [out] or empty.
[[nodiscard]] Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, Here here = {});

/// The rows of `table` [count, width] that `indices` [...] name: [..., width].
[[nodiscard]] Tensor embedding(const Tensor& table, const Tensor& indices, Here here = {});

struct DropoutOptions {
  double rate = 0.5;  ///< how likely an element becomes zero: at least 0, below 1. A parameter of the graph.
};
/// Elements of `x` become zero at random, and the others grow so that the expected value stays. For training:
/// elsewhere leave it out.
[[nodiscard]] Tensor dropout(const Tensor& x, const DropoutOptions& options = {}, Here here = {});

/// What self-attention of a width learns.
struct SelfAttention {
  Tensor in_weight, in_bias;    ///< [width, 3 * width], [3 * width]: query, key and value side by side
  Tensor out_weight, out_bias;  ///< [width, width], [width]
};
struct SelfAttentionOptions {
  std::int64_t heads = 1;  ///< divides the width
  bool causal = false;     ///< a position sees itself and those before it
};
/// Every position of x [batch, length, width] looks at the others, with several heads.
[[nodiscard]] Tensor self_attention(const Tensor& x, const SelfAttention& weights,
                                    const SelfAttentionOptions& options = {}, Here here = {});

/// First weights of a linear layer [in, out]: uniform in ±sqrt(6 / (in + out)), after Glorot and Bengio.
[[nodiscard]] Tensor glorot_uniform(std::int64_t in, std::int64_t out, const CreateOptions& options = {},
                                    Here here = {});

}  // namespace tessera::nn
