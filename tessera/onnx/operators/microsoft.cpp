// Operators of the domain com.microsoft that exporters write into real models.
#include "tessera/onnx/mapping.h"

using namespace tessera;
using namespace tessera::onnx;

namespace {

constexpr std::string_view domain = "com.microsoft";

Value optional_input(NodeCall& node, std::size_t i) { return node.has(i) ? node.in(i) : Value(); }

Value mean_of_last(Value x) {
  return x ? x.builder->call("mean", {x}, {{"axes", std::vector<std::int64_t>{-1}}, {"keepdims", true}}) : x;
}

// ---- products and activations

Result<Items> map_fused_matmul(NodeCall& node) {
  Value a = node.in(0), b = node.in(1);
  TESSERA_TRY(node.status());
  for (const std::string_view name : {"transBatchA", "transBatchB"})
    if (node.flag(name, false)) return node.unsupported("attribute '", name, "' is 1");
  if (node.flag("transA", false) && a.rank() > 1) a = transpose_matrix(a);
  if (node.flag("transB", false) && b.rank() > 1) b = transpose_matrix(b);
  const double alpha = node.number("alpha", 1);
  const Value y = matmul(a, b);
  return Items{alpha == 1 ? y : y * alpha};
}

Result<Items> map_fast_gelu(NodeCall& node) {
  const Value bias = optional_input(node, 1);
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

// ---- attention

/// [B, S, heads * size] as [B, heads, S, size].
Value split_heads(Value x, std::int64_t heads) {
  if (!x) return x;
  const Shape shape{x.shape()[0], x.shape()[1], Dim(heads), floor_div(x.shape()[2], Dim(heads))};
  return transpose(reshape(x, shape), std::vector<std::int64_t>{0, 2, 1, 3});
}

Value join_heads(Value x) {
  if (!x) return x;
  const Shape& s = x.shape();
  return reshape(transpose(x, std::vector<std::int64_t>{0, 2, 1, 3}), Shape{s[0], s[2], s[1] * s[3]});
}

Result<std::int64_t> head_count(NodeCall& node) {
  const std::int64_t heads = node.integer("num_heads", 0);
  TESSERA_TRY(node.status());
  if (heads < 1) return node.error("attribute 'num_heads' is ", heads);
  return heads;
}

Value attend(NodeCall& node, Value q, Value k, Value v, Value mask) {
  op::Attributes attributes{{"causal", node.flag("unidirectional", false)}};
  if (const double scale = node.number("scale", 0); scale != 0) attributes.set("scale", scale);
  Values inputs{q, k, v};
  if (mask) inputs.push_back(mask);
  return join_heads(node.b.call("attention", inputs, attributes));
}

/// Keys that a mask of [B, keys] hides, as what `attention` takes.
Result<Value> key_mask(NodeCall& node, std::size_t i) {
  const Value mask = optional_input(node, i);
  if (!mask) return Value();
  if (mask.rank() != 2)
    return node.unsupported("input ", i, " is ", mask.type(), ", only a mask per key is supported");
  const Value seen = node.b.call("ne", {mask, node.b.constant(0, mask.dtype())});
  return reshape(seen, Shape{mask.shape()[0], Dim(1), Dim(1), mask.shape()[1]});
}

Result<Items> map_attention(NodeCall& node) {
  const Value x = node.in(0), weights = node.in(1), bias = optional_input(node, 2);
  const std::int64_t heads = TESSERA_TRY(head_count(node));
  if (node.has(4) || node.has(5) || node.attribute("qkv_hidden_sizes") != nullptr)
    return node.unsupported("inputs 4 and 5 and attribute 'qkv_hidden_sizes' are not supported");
  Value all = matmul(x, weights);
  if (bias) all = all + bias;
  TESSERA_TRY(node.status());
  if (all.rank() != 3) return node.error("input 0 is ", x.type(), ", expected rank 3");
  const Dim size = floor_div(all.shape()[2], Dim(3));
  const auto part = [&](std::int64_t i) {
    return split_heads(slice(all, 2, size * Dim(i), size * Dim(i + 1)), heads);
  };
  const Value mask = TESSERA_TRY(key_mask(node, 3));
  return Items{attend(node, part(0), part(1), part(2), mask)};
}

Result<Items> map_multi_head_attention(NodeCall& node) {
  const std::int64_t heads = TESSERA_TRY(head_count(node));
  for (const std::size_t i : {std::size_t{3}, std::size_t{6}, std::size_t{7}})
    if (node.has(i)) return node.unsupported("input ", i, " is given");
  const Value q = node.in(0), k = node.in(1), v = node.in(2);
  TESSERA_TRY(node.status());
  if (q.rank() != 3 || k.rank() != 3 || v.rank() != 3)
    return node.unsupported("packed inputs: query is ", q.type());
  Value mask = TESSERA_TRY(key_mask(node, 4));
  if (node.has(5)) {
    if (mask) return node.unsupported("inputs 4 and 5 are both given");
    mask = node.in(5);
  }
  return Items{attend(node, split_heads(q, heads), split_heads(k, heads), split_heads(v, heads), mask)};
}

/// Pairs of elements turned by the angles of their position. Pairs are neighbours, or the halves of a head.
Result<Items> map_rotary(NodeCall& node) {
  const Value x = node.in(0);
  const Value positions = cast(node.in(1), Dtype::i64);
  TESSERA_TRY(node.status());
  if (x.rank() != 4)
    return node.unsupported("input 0 is ", x.type(), ", only [batch, heads, steps, size] is supported");
  if (node.flag("interleaved", false)) return node.unsupported("attribute 'interleaved' is 1");
  if (node.integer("rotary_embedding_dim", 0) != 0)
    return node.unsupported("attribute 'rotary_embedding_dim' is given");
  const Shape& s = x.shape();
  const Value steps = positions.rank() == 2 ? positions : reshape(positions, {}) + op::range(node.b, 0, s[2]);
  const auto table = [&](std::size_t i) {
    const Value rows = node.b.call("gather", {node.in(i), steps});
    return rows && rows.rank() == 3
               ? node.b.call("unsqueeze", {rows}, {{"axes", std::vector<std::int64_t>{1}}})
               : rows;
  };
  const Value cosines = table(2), sines = table(3);
  const Dim half = floor_div(s[3], Dim(2));
  const Value a = slice(x, 3, 0, half), b = slice(x, 3, half, s[3]);
  return Items{node.b.call("concat", {a * cosines - b * sines, b * cosines + a * sines}, {{"axis", 3}})};
}

constexpr Mapping table[] = {
    {"Attention", map_attention, 1, domain},
    {"BiasGelu", map_bias_gelu, 1, domain},
    {"FastGelu", map_fast_gelu, 1, domain},
    {"FusedMatMul", map_fused_matmul, 1, domain},
    {"MultiHeadAttention", map_multi_head_attention, 1, domain},
    {"QuickGelu", map_quick_gelu, 1, domain},
    {"RotaryEmbedding", map_rotary, 1, domain},
    {"SimplifiedLayerNormalization", map_simplified_norm},
    {"SkipLayerNormalization", map_skip_norm<true>, 1, domain},
    {"SkipSimplifiedLayerNormalization", map_skip_norm<false>, 1, domain},
};

}  // namespace

std::span<const Mapping> tessera::onnx::microsoft_mappings() { return table; }
