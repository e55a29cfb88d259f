// The kernel over registers. Included by one file per instruction set, which names the namespace. Everything
// here is local to that file, so that no function compiled for a newer processor is linked where an older one
// runs.
//
// REQUIRES TESSERA_GEMM, the name of the namespace.
#include <cstring>
#include <utility>

#include "tessera/runtime/cpu/blocked_gemm.h"

namespace tessera::runtime::cpu::TESSERA_GEMM {
namespace {

// As many accumulators as leave registers for two vectors of b and one number of a.
#if defined(__AVX512F__)
constexpr std::size_t vector_bytes = 64;
constexpr int tile_rows = 14, tile_vectors = 2;
#elif defined(__AVX2__)
constexpr std::size_t vector_bytes = 32;
constexpr int tile_rows = 6, tile_vectors = 2;
#else
constexpr std::size_t vector_bytes = 16;
constexpr int tile_rows = 4, tile_vectors = 2;
#endif
constexpr int lanes = vector_bytes / sizeof(float);
using Vector [[gnu::vector_size(vector_bytes)]] = float;

Vector load(const float* from) {
  Vector out;
  std::memcpy(&out, from, sizeof out);
  return out;
}
void store(const Vector& value, float* to) { std::memcpy(to, &value, sizeof value); }

/// Rows of b that are fetched ahead: they lie too far apart for the processor to foresee.
constexpr int rows_ahead = 4;
/// Of a fetch: into the second cache, the first is full.
constexpr int near_cache = 2;

/// Where the numbers of some rows of a begin, for three at a time: addresses that are a multiple of the
/// stride apart need one register.
template <int rows>
struct RowGroups {
  static constexpr int size = 3, count = (rows + size - 1) / size;
  const float* begin[count];
  std::int64_t stride;

  float at(int row) const { return begin[row / size][row % size * stride]; }
  void move(std::int64_t distance) {
#pragma GCC unroll 16
    for (int g = 0; g < count; ++g) begin[g] += distance;
  }
};

template <int rows>
void multiply(const GemmKernel::Tile& tile) {
  RowGroups<rows> factors{{}, tile.a.row_stride};
#pragma GCC unroll 16
  for (int g = 0; g < factors.count; ++g)
    factors.begin[g] = tile.a.data + g * factors.size * tile.a.row_stride;
  const float *b = tile.b, *ahead = tile.ahead;
  Vector sum[rows][tile_vectors] = {};
  for (std::int64_t k = 0; k < tile.depth; ++k) {
    Vector row[tile_vectors];
#pragma GCC unroll 16
    for (int v = 0; v < tile_vectors; ++v) {
      __builtin_prefetch(ahead + v * lanes, 0, near_cache);
      row[v] = load(b + v * lanes);
    }
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
      const float factor = factors.at(i);
#pragma GCC unroll 16
      for (int v = 0; v < tile_vectors; ++v) sum[i][v] += factor * row[v];
    }
    b += tile.b_stride;
    ahead += tile.ahead_stride;
    factors.move(tile.a.column_stride);
  }
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 16
    for (int v = 0; v < tile_vectors; ++v) {
      float* const at = tile.c + i * tile.c_stride + v * lanes;
      store(tile.is_first ? sum[i][v] : load(at) + sum[i][v], at);
    }
  }
}

// ---- panels

/// Exchanges, in every pair of rows `step` apart, what is not on the diagonal of their squares of `step`.
template <int step, int... e>
void exchange(Vector* rows, std::integer_sequence<int, e...>) {
#pragma GCC unroll 16
  for (int i = 0; i < lanes; ++i) {
    if ((i & step) != 0) continue;
    const Vector a = rows[i], b = rows[i + step];
    rows[i] = __builtin_shufflevector(a, b, ((e & step) == 0 ? e : lanes + e - step)...);
    rows[i + step] = __builtin_shufflevector(a, b, ((e & step) == 0 ? e + step : lanes + e)...);
  }
}

template <int step = 1>
void transpose(Vector* rows) {
  exchange<step>(rows, std::make_integer_sequence<int, lanes>());
  if constexpr (2 * step < lanes) transpose<2 * step>(rows);
}

/// `lanes` columns, each of which lies in one piece, as rows.
void pack_columns(const float* from, std::int64_t stride, std::int64_t depth, float* out) {
  constexpr int width = tile_vectors * lanes;
  std::int64_t k = 0;
  for (; k + lanes <= depth; k += lanes) {
    Vector square[lanes];
#pragma GCC unroll 16
    for (int j = 0; j < lanes; ++j) square[j] = load(from + j * stride + k);
    transpose(square);
#pragma GCC unroll 16
    for (int r = 0; r < lanes; ++r) store(square[r], out + (k + r) * width);
  }
  for (; k < depth; ++k)
    for (int j = 0; j < lanes; ++j) out[k * width + j] = from[j * stride + k];
}

void pack(const MatrixView& b, std::int64_t depth, float* out) {
  constexpr int width = tile_vectors * lanes;
  if (b.row_stride == 1) {
    for (int v = 0; v < tile_vectors; ++v)
      pack_columns(b.data + v * lanes * b.column_stride, b.column_stride, depth, out + v * lanes);
    return;
  }
  for (std::int64_t k = 0; k < depth; ++k, out += width) {
    const float* const row = b.data + k * b.row_stride;
    if (b.column_stride == 1) {
#pragma GCC unroll 16
      for (int v = 0; v < tile_vectors; ++v) {
        __builtin_prefetch(row + rows_ahead * b.row_stride + v * lanes);
        store(load(row + v * lanes), out + v * lanes);
      }
    } else {
      for (int j = 0; j < width; ++j) out[j] = row[j * b.column_stride];
    }
  }
}

// ---- filters

/// Some places at once, next to each other.
template <int places>
void filter_places(const float* const* from, const float* weights, std::int64_t taps, std::int64_t x,
                   float* out) {
  Vector sum[places] = {};
  for (std::int64_t t = 0; t < taps; ++t)
#pragma GCC unroll 16
    for (int p = 0; p < places; ++p) sum[p] += weights[t] * load(from[t] + x + p * lanes);
#pragma GCC unroll 16
  for (int p = 0; p < places; ++p) store(sum[p], out + x + p * lanes);
}

void filter(const float* const* from, const float* weights, std::int64_t taps, std::int64_t stride,
            std::int64_t count, float* out) {
  std::int64_t x = 0;
  if (stride == 1) {
    for (; x + 4 * lanes <= count; x += 4 * lanes) filter_places<4>(from, weights, taps, x, out);
    for (; x + lanes <= count; x += lanes) filter_places<1>(from, weights, taps, x, out);
  }
  for (; x < count; ++x) {
    float sum = 0;
    for (std::int64_t t = 0; t < taps; ++t) sum += weights[t] * from[t][x * stride];
    out[x] = sum;
  }
}

}  // namespace

GemmKernel kernel() {
  GemmKernel out{tile_rows, tile_vectors * lanes, {}, pack, filter};
  [&]<int... i>(std::integer_sequence<int, i...>) { ((out.function[i + 1] = multiply<i + 1>), ...); }
  (std::make_integer_sequence<int, tile_rows>());
  return out;
}

}  // namespace tessera::runtime::cpu::TESSERA_GEMM
