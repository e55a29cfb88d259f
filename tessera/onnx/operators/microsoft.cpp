// Operators of the domain com.microsoft that exporters write into real models.
#include "tessera/onnx/mapping.h"

using namespace tessera;
using namespace tessera::onnx;

namespace {

Value mean_of_last(Value x) {
  return x ? x.builder->call("mean", {x}, {{"axes", std::vector<std::int64_t>{-1}}, {"keepdims", true}}) : x;
}

// ---- products and activations

/// [rows, batch…, columns] as [batch…, rows, columns].
Value with_batch_last(Value x) {
  if (!x || x.rank() < 3) return x;
  std::vector<std::int64_t> order = axes_from(1, x.rank() - 1);
  order.push_back(0);
  order.push_back(static_cast<std::int64_t>(x.rank()) - 1);
  return transpose(x, order);
}

Result<Items> map_fused_matmul(NodeCall& node) {
  Value a = node.in(0), b = node.in(1);
  TESSERA_TRY(node.status());
  if (node.flag("transBatchA", false)) a = with_batch_last(a);
  if (node.flag("transBatchB", false)) b = with_batch_last(b);
  if (node.flag("transA", false) && a.rank() > 1) a = transpose_matrix(a);
  if (node.flag("transB", false) && b.rank() > 1) b = transpose_matrix(b);
  const double alpha = node.number("alpha", 1);
  const Value y = matmul(a, b);
  return Items{alpha == 1 ? y : y * alpha};
}

Result<Items> map_fast_gelu(NodeCall& node) {
  const Value bias = node.in_or_none(1);
  return Items{unary("gelu_tanh", bias ? node.in(0) + bias : node.in(0))};
}
Result<Items> map_bias_gelu(NodeCall& node) { return Items{unary("gelu", node.in(0) + node.in(1))}; }
Result<Items> map_quick_gelu(NodeCall& node) {
  const Value x = node.in(0);
  return Items{x * unary("sigmoid", x * node.number("alpha", 1.702))};
}

// ---- normalisation

/// Of the sum of the inputs and a bias; the sum itself is output 3.
template <bool is_centred>
Result<Items> map_skip_norm(NodeCall& node) {
  constexpr std::size_t bias_input = is_centred ? 4 : 3;
  Value x = node.in(0) + node.in(1);
  if (node.has(bias_input)) x = x + node.in(bias_input);
  const Value mean = mean_of_last(x), centred = is_centred ? x - mean : x;
  const Value inverse =
      unary("rsqrt", mean_of_last(unary("square", centred)) + node.number("epsilon", 1e-12));
  Value y = centred * inverse * node.in(2);
  if (is_centred && node.has(3)) y = y + node.in(3);
  return Items{y, mean, inverse, x};
}

Result<Items> map_simplified_norm(NodeCall& node) {
  const Value x = node.in(0);
  TESSERA_TRY(node.status());
  const std::int64_t axis = TESSERA_TRY(node.axis(node.integer("axis", -1), x.rank()));
  const Value squares =
      node.b.call("mean", {unary("square", x)},
                  {{"axes", axes_from(static_cast<std::size_t>(axis), x.rank())}, {"keepdims", true}});
  const Value inverse = unary("rsqrt", squares + node.number("epsilon", 1e-5));
  return Items{x * inverse * node.in(1), inverse};
}

constexpr Mapping microsoft_table[] = {
    {"BiasGelu", map_bias_gelu, 1, microsoft_domain},
    {"FastGelu", map_fast_gelu, 1, microsoft_domain},
    {"FusedMatMul", map_fused_matmul, 1, microsoft_domain},
    {"QuickGelu", map_quick_gelu, 1, microsoft_domain},
    {"SimplifiedLayerNormalization", map_simplified_norm},
    {"SkipLayerNormalization", map_skip_norm<true>, 1, microsoft_domain},
    {"SkipSimplifiedLayerNormalization", map_skip_norm<false>, 1, microsoft_domain},
};

}  // namespace

std::span<const Mapping> tessera::onnx::microsoft_mappings() { return microsoft_table; }
