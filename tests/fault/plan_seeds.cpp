#include "tests/fault/plan_seeds.h"

#include <algorithm>
#include <array>
#include <optional>

#include "tessera/compile/package.h"
#include "tessera/compile/plan_program.h"
#include "tessera/engine/devices.h"
#include "tessera/ir/parse.h"
#include "tessera/op/ir_builder.h"
#include "tests/support/op_samples.h"

using namespace tessera;
using namespace tessera::fixture;

namespace {

/// A program in text, and what its package says beside it.
struct TextSeed {
  const char* name;
  const char* text;
  compiler::PackageOptions options = {};
};

constexpr const char* softmax_rows = R"(
func f[N, M: i64 in 1..64](x: f32[N, M], w: f32[M, 8]) {
  a: f32[N, M] = mul(x, $0:f32)
  b: f32[N, M] = softmax(a) {axis = -1}
  c: f32[N, 8] = matmul(b, w)
  s: f32[N, 8] = mul(c, $1:f32)
  d: f32[N, 8] = relu(s)
  e: f32[N, 8] = for 3 (d) with [N, M]() [N, M](i: i64[], s: f32[N, 8]) {
    h: f32[N, 8] = mul(s, $2:f32)
    return h
  }
  return e, b
})";

constexpr const char* positive_rows = R"(
func f[N](x: f32[N, 4]) {
  m: f32[N] = max(x) {axes = [1]}
  r: f32[N] = relu(m)
  places: i64[N, 1], k: i64 = nonzero(r)
  kept: i64[k, 1] = slice(places) {starts = shape[0], stops = shape[k], axes = [0]}
  flat: i64[k] = reshape(kept) {shape = shape[k]}
  rows: f32[k, 4] = gather(x, flat) {axis = 0}
  y: f32[k, 4] = exp(rows)
  return y, m, k
})";

constexpr const char* convolutions = R"(
func f[N](x: f32[N, 4, 10, 10], w: f32[8, 4, 3, 3], b: f32[8], v: f32[8, 1, 3, 3], p: f32[6, 8, 1, 1], l: f32[150, 5]) {
  a: f32[N, 8, 10, 10] = conv(x, w, b) {pads = [1, 1, 1, 1]}
  r: f32[N, 8, 10, 10] = relu(a)
  d: f32[N, 8, 10, 10] = conv(r, v) {pads = [1, 1, 1, 1], groups = 8}
  q: f32[N, 8, 5, 5], places: i64[N, 8, 5, 5] = max_pool(d) {kernel = [2, 2], strides = [2, 2]}
  g: f32[N, 6, 5, 5] = conv(q, p)
  t: f32[N, 6, 25] = reshape(g) {shape = shape[N, 6, 25]}
  o: f32[N, 25, 6] = transpose(t) {permutation = [0, 2, 1]}
  h: f32[N, 150] = reshape(o) {shape = shape[N, 150]}
  y: f32[N, 5] = matmul(h, l)
  return y, q
})";

constexpr const char* quantised = R"(
func f[N](x: i8[N, 16], w: i8[16, 24], s: f32[24]) {
  a: i32[N, 16] = cast(x) {dtype = i32}
  z: i32[16, 24] = cast(w) {dtype = i32}
  m: i32[16, 24] = sub(z, 3:i32)
  p: i32[N, 24] = matmul(a, m)
  c: f32[N, 24] = cast(p) {dtype = f32}
  y: f32[N, 24] = mul(c, s)
  return y
})";

constexpr const char* lstm = R"(
func f[T, B](x: f32[T, B, 6], w: f32[6, 32], r: f32[8, 32], h0: f32[B, 8], c0: f32[B, 8]) {
  outs: f32[T, B, 8] = full(0.0) {shape = shape[T, B, 8]}
  y: f32[T, B, 8], h: f32[B, 8], c: f32[B, 8] = for T (outs, h0, c0) with [T, B](x, w, r) [T, B](i: i64[], o: f32[T, B, 8], h: f32[B, 8], c: f32[B, 8], x: f32[T, B, 6], w: f32[6, 32], r: f32[8, 32]) {
    row: f32[B, 6] = gather(x, i) {axis = 0}
    a: f32[B, 32] = matmul(row, w)
    b: f32[B, 32] = matmul(h, r)
    g: f32[B, 32] = add(a, b)
    gi: f32[B, 8] = slice(g) {starts = shape[0], stops = shape[8], axes = [1]}
    gf: f32[B, 8] = slice(g) {starts = shape[8], stops = shape[16], axes = [1]}
    go: f32[B, 8] = slice(g) {starts = shape[16], stops = shape[24], axes = [1]}
    gc: f32[B, 8] = slice(g) {starts = shape[24], stops = shape[32], axes = [1]}
    si: f32[B, 8] = sigmoid(gi)
    sf: f32[B, 8] = sigmoid(gf)
    so: f32[B, 8] = sigmoid(go)
    tc: f32[B, 8] = tanh(gc)
    n: f32[B, 8] = mul(si, tc)
    k: f32[B, 8] = mul(sf, c)
    c1: f32[B, 8] = add(n, k)
    t: f32[B, 8] = tanh(c1)
    h1: f32[B, 8] = mul(so, t)
    h2: f32[1, B, 8] = unsqueeze(h1) {axes = [0]}
    at: i64[1, 1] = reshape(i) {shape = shape[1, 1]}
    o1: f32[T, B, 8] = scatter_nd(o, at, h2)
    return o1, h1, c1
  }
  return y, h, c
})";

constexpr const char* regions = R"(
func f[N](x: f32[N], kind: i64[], on: bool[], a: f32[]) {
  y: f32[N] = switch kind with [N](x) [[N](x: f32[N]) {
    r: f32[N] = relu(x)
    return r
  }, [N](x: f32[N]) {
    r: f32[N] = tanh(x)
    return r
  }]
  z: f32[N] = if on with [N](y, x) [N](y: f32[N], x: f32[N]) {
    return y
  } else [N](y: f32[N], x: f32[N]) {
    s: f32[N] = mul(x, $0:f32)
    return s
  }
  root: f32[] = while (a) with (a) limit 20 (r: f32[], a: f32[]) {
    square: f32[] = mul(r, r)
    error: f32[] = sub(square, a)
    size: f32[] = abs(error)
    more: bool[] = gt(size, 1e-06)
    return more
  } do (r: f32[], a: f32[]) {
    quotient: f32[] = div(a, r)
    sum: f32[] = add(r, quotient)
    next: f32[] = mul(sum, 0.5)
    return next
  }
  return z, root
})";

constexpr const char* counter = R"(
func f(x: f32[4, 3], s: f32[4, 3], n: i64[2]) {
  t: f32[4, 3] = add(x, s)
  u: f32[4, 3] = tanh(t)
  m: i64[2] = add(n, 1)
  return u, t, m
})";

constexpr const char* attention = R"(
func f[B, S](q: f32[B, 2, S, 8], k: f32[B, 2, S, 8], v: f32[B, 2, S, 8], g: f32[16], e: f32[16]) {
  o: f32[B, 2, S, 8] = attention(q, k, v) {causal = true}
  t: f32[B, S, 2, 8] = transpose(o) {permutation = [0, 2, 1, 3]}
  h: f32[B, S, 16] = reshape(t) {shape = shape[B, S, 16]}
  n: f32[B, S, 16] = layer_norm(h, g, e) {axis = -1}
  y: f32[B, S, 16] = gelu(n)
  best: f32[B, S, 3], at: i64[B, S, 3] = topk(y) {k = 3, axis = 2}
  return y, best, at
})";

std::span<const TextSeed> text_seeds() {
  static const TextSeed seeds[] = {
      {"softmax_rows", softmax_rows},
      {"positive_rows", positive_rows},
      {"convolutions", convolutions},
      {"quantised", quantised},
      {"lstm", lstm},
      {"regions", regions},
      {"counter", counter, {.states = {1, 2}}},
      {"attention", attention},
      {"flags", softmax_rows, {.inputs = {"x", "is_cached", "w"}, .flags = {{.input = 1, .rank = 1}}}},
  };
  return seeds;
}

Result<PlanSeed> saved(std::string name, const ir::FunctionRef& function, compiler::PackageOptions options) {
  const auto device = TESSERA_TRY(engine::find_device("cpu"));
  const auto planned = TESSERA_TRY(compiler::plan_program(function, device->target()));
  const std::vector<plan::Program> programs(std::size_t{1} << options.flags.size(), planned.program);
  const auto package = compiler::package(*function, programs, "cpu", std::move(options));
  std::string bytes = TESSERA_TRY(plan::to_bytes(package));
  return PlanSeed{.name = std::move(name), .bytes = std::move(bytes), .sizes = {}};
}

Result<PlanSeed> saved(const TextSeed& seed) {
  return saved(seed.name, TESSERA_TRY(ir::parse_function(seed.text)), seed.options);
}

/// The call alone, with symbols for its sizes.
Result<PlanSeed> saved(const Sample& sample) {
  const auto dtypes = dtypes_of(*sample.card);
  const bool has_f32 = std::find(dtypes.begin(), dtypes.end(), ir::Dtype::f32) != dtypes.end();
  const ir::Dtype dtype = has_f32 || dtypes.empty() ? ir::Dtype::f32 : dtypes.front();
  op::IrBuilder builder;
  for (const auto& [name, symbol] : sample.symbols) builder.adopt_size(symbol);
  op::Values inputs;
  for (const op::ValueType& type : sample.types(dtype, nullptr))
    inputs.push_back(builder.parameter("x", type));
  const auto results = builder.call_all(sample.card->name, inputs, sample.attributes);
  PlanSeed out = TESSERA_TRY(saved(sample.text, TESSERA_TRY(builder.function("f", results)), {}));
  out.sizes = sample.sizes;
  return out;
}

}  // namespace

/// The texts are tried as often as the ops together: they hold more that can go wrong.
std::size_t tessera::fixture::plan_seed_count() { return 2 * op_samples().size(); }

Result<const PlanSeed*> tessera::fixture::plan_seed(std::size_t index) {
  static std::map<std::size_t, PlanSeed> known;
  const std::size_t texts = text_seeds().size();
  const bool is_text = index >= op_samples().size();
  const std::size_t key = is_text ? index % texts : texts + index;
  if (const auto at = known.find(key); at != known.end()) return &at->second;
  PlanSeed seed = TESSERA_TRY(is_text ? saved(text_seeds()[key]) : saved(op_samples()[index]));
  return &known.emplace(key, std::move(seed)).first->second;
}
