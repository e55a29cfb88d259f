// Attention, MultiHeadAttention and RotaryEmbedding of the domain com.microsoft.
#include "tessera/onnx/mapping.h"

using namespace tessera;
using namespace tessera::onnx;

namespace {

using Order = std::vector<std::int64_t>;

// ---- heads

/// [B, S, heads * size] as [B, heads, S, size].
Value split_heads(Value x, std::int64_t heads) {
  if (!x) return x;
  const Shape shape{x.shape()[0], x.shape()[1], Dim(heads), floor_div(x.shape()[2], Dim(heads))};
  return transpose(reshape(x, shape), Order{0, 2, 1, 3});
}

Value join_heads(Value x) {
  if (!x) return x;
  const Shape& s = x.shape();
  return reshape(transpose(x, Order{0, 2, 1, 3}), Shape{s[0], s[2], s[1] * s[3]});
}

Result<std::int64_t> head_count(NodeCall& node) {
  const std::int64_t heads = node.integer("num_heads", 0);
  TESSERA_TRY(node.status());
  if (heads < 1) return node.error("attribute 'num_heads' is ", heads);
  return heads;
}

/// Queries, keys and values of one call, [B, heads, steps, size].
struct Heads {
  Value q, k, v;
  Dim past = 0;  ///< keys that were there before the first query
};

/// Puts keys and values of earlier calls in front.
void put_before(NodeCall& node, Heads& heads, Value past_k, Value past_v) {
  if (!past_k || !past_v || past_k.rank() != 4) return;
  heads.past = past_k.shape()[2];
  heads.k = node.b.call("concat", {past_k, heads.k}, {{"axis", 2}});
  heads.v = node.b.call("concat", {past_v, heads.v}, {{"axis", 2}});
}

// ---- masks

/// Which keys a query may see, by an input of any of the forms a mask may have; [B, 1, S or 1, keys].
Result<Value> seen_keys(NodeCall& node, std::size_t i, const Heads& heads) {
  const Value mask = node.in_or_none(i);
  if (!mask) return Value();
  const Dim batch = heads.q.shape()[0], keys = heads.k.shape()[2];
  if (mask.rank() == 1) {
    if (!(mask.shape()[0] == batch))
      return node.unsupported("input ", i, " is ", mask.type(), ", expected a length per batch");
    const Value lengths = reshape(cast(mask, Dtype::i64), Shape{batch, Dim(1), Dim(1), Dim(1)});
    return node.b.call("lt", {op::range(node.b, 0, keys), lengths});
  }
  const Value seen = node.b.call("ne", {mask, node.b.constant(0, mask.dtype())});
  const Shape& s = mask.shape();
  if (mask.rank() == 2) return reshape(seen, Shape{s[0], Dim(1), Dim(1), s[1]});
  if (mask.rank() == 3) return reshape(seen, Shape{s[0], Dim(1), s[1], s[2]});
  return node.unsupported("input ", i, " is ", mask.type(), ", a mask of another rank");
}

/// Queries see the keys up to their own, behind those of earlier calls.
Value causal_keys(NodeCall& node, const Heads& heads) {
  const Value places =
      reshape(op::range(node.b, heads.past, heads.q.shape()[2]), Shape{heads.q.shape()[2], Dim(1)});
  return node.b.call("le", {op::range(node.b, 0, heads.k.shape()[2]), places});
}

Value both(NodeCall& node, Value a, Value b) {
  return a && b ? node.b.call("logical_and", {a, b}) : a ? a : b;
}

/// softmax(q k^T scale + bias) v for keys that may be seen; `bias` may be empty.
Value attend(NodeCall& node, const Heads& heads, Value seen, Value bias) {
  op::Attributes attributes;
  if (const double scale = node.number("scale", 0); scale != 0) attributes.set("scale", scale);
  if (node.flag("unidirectional", false)) seen = both(node, seen, causal_keys(node, heads));
  // What hides keys is a large number, not infinity: a query that sees none gets the mean of all.
  const double hidden = node.number("mask_filter_value", -10000);
  if (seen && bias) bias = where(seen, bias, bias + hidden);
  if (seen && !bias)
    bias = where(seen, node.b.constant(0, heads.q.dtype()), node.b.constant(hidden, heads.q.dtype()));
  Values inputs{heads.q, heads.k, heads.v};
  if (bias) inputs.push_back(bias);
  return join_heads(node.b.call("attention", inputs, attributes));
}

// ---- the operators

/// Where the queries, keys and values of all heads end in the columns of the weights.
Result<std::array<Dim, 3>> ends_of_parts(NodeCall& node, const Dim& columns) {
  const auto sizes = node.integers("qkv_hidden_sizes");
  TESSERA_TRY(node.status());
  const Dim third = floor_div(columns, Dim(3));
  if (sizes.empty()) return std::array<Dim, 3>{third, third * Dim(2), third * Dim(3)};
  if (sizes.size() != 3) return node.error("attribute 'qkv_hidden_sizes' has ", sizes.size(), " entries");
  return std::array<Dim, 3>{Dim(sizes[0]), Dim(sizes[0] + sizes[1]), Dim(sizes[0] + sizes[1] + sizes[2])};
}

Result<Items> map_attention(NodeCall& node) {
  const Value x = node.in(0), weights = node.in(1), bias = node.in_or_none(2), past = node.in_or_none(4);
  const std::int64_t heads = TESSERA_TRY(head_count(node));
  if (node.flag("do_rotary", false)) return node.unsupported("attribute 'do_rotary' is 1");
  Value all = matmul(x, weights);
  if (bias) all = all + bias;
  TESSERA_TRY(node.status());
  if (all.rank() != 3) return node.error("input 0 is ", x.type(), ", expected rank 3");
  const auto ends = TESSERA_TRY(ends_of_parts(node, all.shape()[2]));
  const auto part = [&](const Dim& begin, const Dim& end) {
    return split_heads(slice(all, 2, begin, end), heads);
  };
  Heads own{part(0, ends[0]), part(ends[0], ends[1]), part(ends[1], ends[2])};
  TESSERA_TRY(node.status());
  if (past && past.rank() == 5) {
    const auto half = [&](std::int64_t i) {
      return node.b.call("squeeze", {slice(past, 0, i, i + 1)}, {{"axes", Order{0}}});
    };
    put_before(node, own, half(0), half(1));
  }
  TESSERA_TRY(node.status());
  const Value seen = TESSERA_TRY(seen_keys(node, 3, own));
  const auto row = [&](Value v) { return node.b.call("unsqueeze", {v}, {{"axes", Order{0}}}); };
  const Value y = attend(node, own, seen, node.in_or_none(5));
  if (node.node.outputs.size() < 2) return Items{y};
  return Items{y, node.b.call("concat", {row(own.k), row(own.v)}, {{"axis", 0}})};
}

/// Entry i of axis 3 of [B, S, heads, parts, size], as [B, heads, S, size].
Value packed_part(NodeCall& node, Value x, std::int64_t i) {
  return transpose(node.b.call("squeeze", {slice(x, 3, i, i + 1)}, {{"axes", Order{3}}}), Order{0, 2, 1, 3});
}

/// Queries, keys and values side by side, packed in pairs or all three, or with heads already split.
Result<Heads> heads_of(NodeCall& node, std::int64_t heads) {
  const Value q = node.in(0), k = node.in_or_none(1), v = node.in_or_none(2), bias = node.in_or_none(3);
  TESSERA_TRY(node.status());
  if (q.rank() == 5 && !k && !bias)
    return Heads{packed_part(node, q, 0), packed_part(node, q, 1), packed_part(node, q, 2)};
  if (q.rank() != 3 || !k) return node.unsupported("input 0 is ", q.type(), ", a form that is not known");
  const Dim width = q.shape()[2];
  const auto part = [&](Value x, const Dim& begin, const Dim& size) {
    return split_heads(bias ? x + slice(bias, 0, begin, begin + size) : x, heads);
  };
  if (k.rank() == 5 && !v && !bias)
    return Heads{split_heads(q, heads), packed_part(node, k, 0), packed_part(node, k, 1)};
  if (k.rank() == 4 && v && v.rank() == 4) return Heads{part(q, 0, width), k, v};
  if (k.rank() != 3 || !v || v.rank() != 3)
    return node.unsupported("input 1 is ", k.type(), ", a form that is not known");
  return Heads{part(q, 0, width), part(k, width, width), part(v, width * Dim(2), v.shape()[2])};
}

Result<Items> map_multi_head_attention(NodeCall& node) {
  const std::int64_t heads = TESSERA_TRY(head_count(node));
  Heads own = TESSERA_TRY(heads_of(node, heads));
  put_before(node, own, node.in_or_none(6), node.in_or_none(7));
  TESSERA_TRY(node.status());
  const Value seen = TESSERA_TRY(seen_keys(node, 4, own));
  return Items{attend(node, own, seen, node.in_or_none(5)), own.k, own.v};
}

// ---- rotary embedding

/// Cosines or sines of all positions, [B or 1, 1, S, half].
Value angles(NodeCall& node, std::size_t input, Value steps) {
  const Value rows = node.b.call("gather", {node.in(input), steps});
  if (!rows) return rows;
  const Shape& s = rows.shape();
  return rows.rank() == 3 ? reshape(rows, Shape{s[0], Dim(1), s[1], s[2]})
                          : reshape(rows, Shape{Dim(1), Dim(1), s[0], s[1]});
}

/// Pairs of elements turned by their angles; the pairs are neighbours, or the halves of x.
Value turned(NodeCall& node, Value x, Value cosines, Value sines, bool are_neighbours) {
  const Shape s = x.shape();
  const Dim half = floor_div(s[3], Dim(2));
  const Value pairs = are_neighbours ? reshape(x, Shape{s[0], s[1], s[2], half, Dim(2)}) : x;
  const auto side = [&](std::int64_t i) {
    if (!are_neighbours) return slice(x, 3, half * Dim(i), half * Dim(i + 1));
    return node.b.call("squeeze", {slice(pairs, 4, i, i + 1)}, {{"axes", Order{4}}});
  };
  const Value a = side(0), b = side(1), first = a * cosines - b * sines, second = b * cosines + a * sines;
  if (!are_neighbours) return node.b.call("concat", {first, second}, {{"axis", 3}});
  const auto last = [&](Value v) { return node.b.call("unsqueeze", {v}, {{"axes", Order{4}}}); };
  return reshape(node.b.call("concat", {last(first), last(second)}, {{"axis", 4}}), s);
}

Result<Items> map_rotary(NodeCall& node) {
  const Value given = node.in(0), positions = cast(node.in(1), Dtype::i64), table = node.in(2);
  const std::int64_t heads = node.integer("num_heads", 0), part = node.integer("rotary_embedding_dim", 0);
  TESSERA_TRY(node.status());
  if (given.rank() != 4 && given.rank() != 3)
    return node.error("input 0 is ", given.type(), ", expected rank 3 or 4");
  if (table.rank() != 2) return node.error("input 2 is ", table.type(), ", expected rank 2");
  Value x = given;
  if (given.rank() == 3) {
    // Without a number of heads the tables tell: they have half of the size of a head.
    const Dim size = heads > 0 ? floor_div(given.shape()[2], Dim(heads)) : table.shape()[1] * Dim(2);
    const Shape& s = given.shape();
    x = transpose(reshape(given, Shape{s[0], s[1], floor_div(s[2], size), size}), Order{0, 2, 1, 3});
  }
  TESSERA_TRY(node.status());
  const Shape s = x.shape();
  const Value steps = positions.rank() == 2 ? positions : reshape(positions, {}) + op::range(node.b, 0, s[2]);
  const Value cosines = angles(node, 2, steps), sines = angles(node, 3, steps);
  const bool are_neighbours = node.flag("interleaved", false);
  Value y = part == 0 ? turned(node, x, cosines, sines, are_neighbours)
                      : turned(node, slice(x, 3, 0, part), cosines, sines, are_neighbours);
  if (part != 0) y = node.b.call("concat", {y, slice(x, 3, part, s[3])}, {{"axis", 3}});
  return Items{given.rank() == 3 ? join_heads(y) : y};
}

constexpr Mapping attention_table[] = {
    {"Attention", map_attention, 1, microsoft_domain},
    {"MultiHeadAttention", map_multi_head_attention, 1, microsoft_domain},
    {"RotaryEmbedding", map_rotary, 1, microsoft_domain},
};

}  // namespace

std::span<const Mapping> tessera::onnx::attention_mappings() { return attention_table; }
