// Attention: means of values, weighted by how well their keys fit a query.
#include <cmath>
#include <limits>

#include "tessera/op/by_parts.h"
#include "tessera/op/families/make.h"
#include "tessera/op/families/softmax.h"
#include "tessera/op/matrix_product.h"
#include "tessera/op/wide_buffer.h"
#include "tessera/op/work.h"

using namespace tessera;
using namespace tessera::op;

namespace {

constexpr double minus_infinity = -std::numeric_limits<double>::infinity();

/// The sizes of a call: q [batch, queries, depth], k [batch, keys, depth], v [batch, keys, width].
struct Sizes {
  Shape batch;
  Dim queries, keys, width;

  [[nodiscard]] Shape with_batch(const Dim& rows, const Dim& columns) const {
    Shape out = batch;
    out.push_back(rows);
    out.push_back(columns);
    return out;
  }
};

Result<void> check_ranks(const CallInfo& call) {
  for (std::size_t i = 0; i < 3; ++i)
    if (call.input(i).rank() < 2)
      return call.error(call.input_name(i), " (", call.input(i), ") has rank ", call.input(i).rank(),
                        ", expected at least 2");
  return {};
}

/// The batch of the inputs before, joined with that of input i.
Result<Shape> joined_batch(const CallInfo& call, const Shape& before, const Shape& own, std::size_t i) {
  auto batch = call.broadcast(before, own, "the batch", "the batch");
  if (!batch)
    return call.error("the batch sizes ", before, " of the inputs before and ", own, " of ",
                      call.input_name(i), " (", call.input(i), ") do not agree");
  return batch;
}

/// The mask broadcasts over [batch, queries, keys], and may add to the batch.
Result<void> join_mask(const CallInfo& call, Sizes& sizes) {
  const ValueType &mask = call.input(3), &q = call.input(0);
  if (mask.dtype != Dtype::boolean && mask.dtype != q.dtype)
    return call.error("'mask' has dtype ", mask.dtype, ", expected bool or ", q.dtype, ", which 'q' has");
  Shape full(2, Dim(1));
  for (std::size_t i = 0; i < std::min<std::size_t>(mask.rank(), 2); ++i)
    full[1 - i] = mask.shape[mask.rank() - 1 - i];
  const Dim expected[] = {sizes.queries, sizes.keys};
  for (std::size_t i = 0; i < 2; ++i)
    if (full[i] != Dim(1))
      TESSERA_TRY(call.unify(full[i], expected[i],
                             cat(i == 0 ? "queries" : "keys", " of 'mask' (", mask, ") and of '",
                                 i == 0 ? "q" : "k", "' (", call.input(i), ")")));
  if (mask.rank() > 2) sizes.batch = TESSERA_TRY(joined_batch(call, sizes.batch, batch_of(mask.shape), 3));
  return {};
}

Result<Sizes> sizes_of(const CallInfo& call) {
  TESSERA_TRY(check_ranks(call));
  const ValueType &q = call.input(0), &k = call.input(1), &v = call.input(2);
  const auto back = [](const ValueType& type, std::size_t i) { return type.shape[type.rank() - i]; };
  TESSERA_TRY(call.unify(back(q, 1), back(k, 1), cat("the last axes of 'q' (", q, ") and 'k' (", k, ")")));
  const Dim keys = TESSERA_TRY(
      call.unify(back(k, 2), back(v, 2), cat("keys of 'k' (", k, ") and values of 'v' (", v, ")")));
  Sizes out{batch_of(q.shape), back(q, 2), keys, back(v, 1)};
  for (std::size_t i = 1; i < 3; ++i)
    out.batch = TESSERA_TRY(joined_batch(call, out.batch, batch_of(call.input(i).shape), i));
  if (call.has_input(3)) TESSERA_TRY(join_mask(call, out));
  return out;
}

Result<ValueTypes> infer_attention(const CallInfo& call) {
  const Sizes sizes = TESSERA_TRY(sizes_of(call));
  return ValueTypes{{call.input(0).dtype, sizes.with_batch(sizes.queries, sizes.width)}};
}

// ---- the reference

/// One call in numbers. The mask is seen with the shape of the scores.
struct Attention {
  std::int64_t queries = 0, keys = 0, depth = 0, width = 0;
  double scale = 1;
  bool causal = false, boolean_mask = false;
  WideBuffer<double> q, k, v, mask, scores;
  Layout mask_layout;

  /// The score of a key that fits the query so well; nothing that is hidden is seen, whatever it is.
  [[nodiscard]] double score(double fit, std::int64_t mask_at, std::int64_t query, std::int64_t key) const {
    if (causal && key > query) return minus_infinity;
    if (mask.size() == 0) return fit;
    const std::size_t rank = mask_layout.rank();
    const double value =
        mask[mask_at + query * mask_layout.strides[rank - 2] + key * mask_layout.strides[rank - 1]];
    if (!boolean_mask) return fit + value;
    return value != 0 ? fit : minus_infinity;
  }

  void attend(std::int64_t q_at, std::int64_t k_at, std::int64_t v_at, std::int64_t mask_at, double* y) {
    for (std::int64_t i = 0; i < queries; ++i, y += width) {
      const double* query = q.data() + q_at + i * depth;
      for (std::int64_t j = 0; j < keys; ++j) {
        const double* key = k.data() + k_at + j * depth;
        double fit = 0;
        for (std::int64_t d = 0; d < depth; ++d) fit += query[d] * key[d];
        scores[j] = score(fit * scale, mask_at, i, j);
      }
      softmax_row({scores.data(), keys});
      for (std::int64_t j = 0; j < keys; ++j)
        for (std::int64_t d = 0; d < width; ++d) y[d] += scores[j] * v[v_at + j * width + d];
    }
  }
};

/// 1 / sqrt(depth) if the call does not say; where there is nothing to scale it may be anything finite.
double scale_of(const CallInfo& call, std::int64_t depth) {
  if (call.has("scale")) return call.number("scale");
  return 1 / std::sqrt(static_cast<double>(std::max<std::int64_t>(depth, 1)));
}

Result<Attention> load_call(const CallInfo& call, std::span<const Array> inputs, const Sizes& sizes) {
  Attention out;
  out.queries = sizes.queries.value();
  out.keys = sizes.keys.value();
  out.width = sizes.width.value();
  out.depth = inputs[0].shape().back();
  out.scale = scale_of(call, out.depth);
  out.causal = call.flag("causal");
  out.q = TESSERA_TRY(WideBuffer<double>::load(inputs[0]));
  out.k = TESSERA_TRY(WideBuffer<double>::load(inputs[1]));
  out.v = TESSERA_TRY(WideBuffer<double>::load(inputs[2]));
  out.scores = TESSERA_TRY(WideBuffer<double>::zeros(out.keys));
  const Extents scores = extents_of(sizes.with_batch(sizes.queries, sizes.keys));
  out.mask_layout = {scores, Extents(scores.size(), 0), 0};
  if (inputs.size() > 3) {
    out.boolean_mask = inputs[3].dtype == Dtype::boolean;
    out.mask = TESSERA_TRY(WideBuffer<double>::load(inputs[3]));
    out.mask_layout = broadcast_layout(contiguous(inputs[3].shape()), scores);
  }
  return out;
}

Result<void> run_attention(const CallInfo& call, std::span<const Array> inputs,
                           std::span<const Array> results) {
  const Sizes sizes = TESSERA_TRY(sizes_of(call));
  const Extents batch = extents_of(sizes.batch);
  Attention attention = TESSERA_TRY(load_call(call, inputs, sizes));
  auto y = TESSERA_TRY(WideBuffer<double>::zeros(results[0].size()));
  const Layout q_at = batch_layout(inputs[0].shape(), batch), k_at = batch_layout(inputs[1].shape(), batch),
               v_at = batch_layout(inputs[2].shape(), batch), all = contiguous(batch);
  Layout mask_at = attention.mask_layout;
  mask_at.shape = batch;
  mask_at.strides = Extents(mask_at.strides.begin(), mask_at.strides.end() - 2);
  for_each_offset<5>(batch, {&q_at, &k_at, &v_at, &mask_at, &all}, [&](const auto& at) {
    attention.attend(at[0], at[1], at[2], at[3], y.data() + at[4] * attention.queries * attention.width);
  });
  y.store(results[0]);
  return {};
}

// ---- by parts

Value scaled(Builder& b, const CallInfo& call, Value q) {
  const Dim& depth = q.shape()[q.rank() - 1];
  if (call.has("scale") || depth.is_constant())
    return q * scale_of(call, depth.is_constant() ? depth.value() : 1);
  return q * unary("rsqrt", size_as_number(b, ir::max(depth, Dim(1)), q.dtype()));
}

Values decompose_attention(Builder& b, const CallInfo& call, std::span<const Value> inputs) {
  Value scores = matmul(scaled(b, call, inputs[0]), transpose_matrix(inputs[1]));
  if (!scores) return {scores};
  const Value hidden = b.constant(minus_infinity, scores.dtype());
  const Shape shape = scores.shape();
  if (inputs.size() > 3) {
    const Value mask = inputs[3];
    scores = mask.dtype() == Dtype::boolean ? where(mask, scores, hidden) : scores + mask;
  }
  if (call.flag("causal")) {  // last: also what the mask says of a hidden key is hidden
    const Value all = full(b, 1, {Dtype::boolean, {shape[shape.size() - 2], shape[shape.size() - 1]}});
    scores = where(unary("tril", all), scores, hidden);
  }
  return {matmul(unary("softmax", scores), inputs[2])};
}

/// Every query meets every key in `depth` products, and every value in `width`.
double work_of_attention(const CallInfo& call, const ValueTypes& results) {
  const Shape &q = call.input(0).shape, &k = call.input(1).shape, &y = results[0].shape;
  const double pairs =
      element_estimate(Shape(y.begin(), y.end() - 1)) * static_cast<double>(k[k.size() - 2].value());
  return pairs * static_cast<double>(q.back().value() + y.back().value());
}

// ---- cards

constexpr Input attention_inputs[] = {{"q"}, {"k"}, {"v"}, {"mask", "U", InputKind::optional}};
constexpr AttributeSpec attention_attributes[] = {
    {.name = "causal", .kind = AttributeKind::boolean},
    {.name = "scale", .kind = AttributeKind::number, .may_be_absent = true},
};

constexpr Card attention_family[] = {
    {.name = "attention",
     .summary =
         "softmax(q k^T * scale + mask) v; scale is 1 / sqrt(the last size of q) if not given; a mask of "
         "booleans hides keys where it is false, causal hides keys behind their query; batches "
         "broadcast; a query that sees no key gives NaN",
     .inputs = attention_inputs,
     .attributes = attention_attributes,
     .U = float_dtypes | bool_dtypes,
     .traits = {.costly = true, .composite = true},
     .onnx = {"Attention"},
     .spellings = "scaled_dot_product_attention",
     .oracle = "torch:nn.functional._scaled_dot_product_attention",
     .infer = infer_attention,
     .reference = run_attention,
     .gradient = gradient_by_parts,
     .decompose = decompose_attention,
     .work = work_of_attention},
};

}  // namespace

std::span<const Card> tessera::op::attention_cards() { return attention_family; }
