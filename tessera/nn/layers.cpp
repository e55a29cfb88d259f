#include "tessera/nn/layers.h"

#include <cmath>

#include "tessera/base/text.h"
#include "tessera/tensor/call.h"

using namespace tessera;
using detail::fail;

Tensor tessera::nn::linear(const Tensor& x, const Tensor& weight, const Tensor& bias, Here here) {
  const Tensor product = matmul(Operand(x, here), Operand(weight, here));
  return bias.is_empty() ? product : Operand(product, here) + Operand(bias, here);
}

Tensor tessera::nn::embedding(const Tensor& table, const Tensor& indices, Here here) {
  return gather(Operand(table, here), Operand(indices, here), {.axis = 0});
}

Tensor tessera::nn::dropout(const Tensor& x, const DropoutOptions& options, Here here) {
  if (!(options.rate >= 0 && options.rate < 1))
    fail(here, cat("dropout: the rate is ", options.rate, ", it must be at least 0 and below 1"));
  // In f32 whatever x is: a mask of f16 would round rates, and uniform numbers near 1 up to 1.
  const Tensor chance = rand(x.shape(here), {.dtype = f32, .engine = x.engine()}, here);
  const Tensor kept = (Operand(chance, here) >= Operand(options.rate, here)).cast(x.dtype(), here);
  return Operand(x * kept, here) * Operand(1 / (1 - options.rate), here);
}

Tensor tessera::nn::self_attention(const Tensor& x, const SelfAttention& weights,
                                   const SelfAttentionOptions& options, Here here) {
  if (x.rank(here) != 3)
    fail(here, cat("self_attention: x has the shape [", join(x.shape(), ", "), "], it must have rank 3"));
  const std::int64_t batch = x.dim(0), length = x.dim(1), width = x.dim(2), heads = options.heads;
  if (heads < 1 || width % heads != 0)
    fail(here, cat("self_attention: ", heads, " heads do not divide the width ", width));
  const Tensor all = linear(x, weights.in_weight, weights.in_bias, here)
                         .reshape({batch, length, 3, heads, width / heads}, here)
                         .transpose({2, 0, 3, 1, 4}, here);
  const Tensor seen = attention(Operand(all[0], here), all[1], all[2], {}, {.causal = options.causal});
  const Tensor joined = seen.transpose({0, 2, 1, 3}, here).reshape({batch, length, width}, here);
  return linear(joined, weights.out_weight, weights.out_bias, here);
}

Tensor tessera::nn::glorot_uniform(std::int64_t in, std::int64_t out, const CreateOptions& options,
                                   Here here) {
  const double limit = std::sqrt(6.0 / static_cast<double>(in + out));
  return rand({in, out}, options, here) * (2 * limit) - limit;
}
