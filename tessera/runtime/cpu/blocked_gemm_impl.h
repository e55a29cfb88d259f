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
constexpr int rows_ahead = 8;
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

/// Fetches the rows that are read and written when the sums are there, spread over the rows of b: many at
/// once would be waited for.
template <int rows, int vectors, bool updates>
struct ResultsAhead {
  explicit ResultsAhead(const GemmKernel::Tile& of) : tile(of), interval(of.depth / rows), left(interval) {}

  void step() {
    if (--left > 0 || row == rows) return;
    left = interval;
#pragma GCC unroll 16
    for (int v = 0; v < vectors; ++v) {
      __builtin_prefetch(tile.c + row * tile.c_stride + v * lanes, 1);
      if constexpr (updates) {
        __builtin_prefetch(tile.addend + row * tile.addend_stride + v * lanes);
        __builtin_prefetch(tile.updated + row * tile.updated_stride + v * lanes, 1);
      }
    }
    ++row;
  }

  const GemmKernel::Tile& tile;
  const std::int64_t interval;
  std::int64_t left, row = 0;
};

/// The sums of a tile to where they go.
template <int rows, int vectors, bool updates>
[[gnu::always_inline]] inline void write_back(const GemmKernel::Tile& tile,
                                              const Vector (&sum)[rows][vectors]) {
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i) {
    // Before anything is written: a processor takes addresses that are some pages apart for the same.
    [[maybe_unused]] Vector addend[vectors];
#pragma GCC unroll 16
    for (int v = 0; updates && v < vectors; ++v)
      addend[v] = load(tile.addend + i * tile.addend_stride + v * lanes);
#pragma GCC unroll 16
    for (int v = 0; v < vectors; ++v) {
      float* const at = tile.c + i * tile.c_stride + v * lanes;
      const Vector result = tile.is_first ? sum[i][v] : load(at) + sum[i][v];
      store(result, at);
      if constexpr (updates)
        store(addend[v] + tile.factor * result, tile.updated + i * tile.updated_stride + v * lanes);
    }
  }
}

template <int rows, int vectors, bool copies = false, bool updates = false>
void multiply(const GemmKernel::Tile& tile) {
  RowGroups<rows> factors{{}, tile.a.row_stride};
#pragma GCC unroll 16
  for (int g = 0; g < factors.count; ++g)
    factors.begin[g] = tile.a.data + g * factors.size * tile.a.row_stride;
  const float *b = tile.b, *ahead = tile.ahead;
  Vector sum[rows][vectors] = {};
  ResultsAhead<rows, vectors, updates> results(tile);
  for (std::int64_t k = 0; k < tile.depth; ++k) {
    results.step();
    Vector row[vectors];
#pragma GCC unroll 16
    for (int v = 0; v < vectors; ++v) {
      if constexpr (copies)
        __builtin_prefetch(b + rows_ahead * tile.b_stride + v * lanes);
      else
        __builtin_prefetch(ahead + v * lanes, 0, near_cache);
      row[v] = load(b + v * lanes);
      if constexpr (copies) store(row[v], tile.copy + k * vectors * lanes + v * lanes);
    }
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
      const float factor = factors.at(i);
#pragma GCC unroll 16
      for (int v = 0; v < vectors; ++v) sum[i][v] += factor * row[v];
    }
    b += tile.b_stride;
    ahead += tile.ahead_stride;
    factors.move(tile.a.column_stride);
  }
  write_back<rows, vectors, updates>(tile, sum);
}

// ---- panels

/// Exchanges, in every pair of rows `step` apart, what is not on the diagonal of their squares of `step`.
template <int step, int... e>
[[gnu::always_inline]] inline void exchange(Vector* rows, std::integer_sequence<int, e...>) {
#pragma GCC unroll 16
  for (int i = 0; i < lanes; ++i) {
    if ((i & step) != 0) continue;
    const Vector a = rows[i], b = rows[i + step];
    rows[i] = __builtin_shufflevector(a, b, ((e & step) == 0 ? e : lanes + e - step)...);
    rows[i + step] = __builtin_shufflevector(a, b, ((e & step) == 0 ? e + step : lanes + e)...);
  }
}

/// In registers, if it is a part of its caller.
template <int step = 1>
[[gnu::always_inline]] inline void transpose(Vector* rows) {
  exchange<step>(rows, std::make_integer_sequence<int, lanes>());
  if constexpr (2 * step < lanes) transpose<2 * step>(rows);
}

/// `lanes` columns, each of which lies in one piece, as rows. Those behind them are fetched meanwhile: they
/// are needed next.
void pack_columns(const float* from, std::int64_t stride, std::int64_t depth, float* out) {
  constexpr int width = tile_vectors * lanes;
  std::int64_t k = 0;
  for (; k + lanes <= depth; k += lanes) {
    Vector square[lanes];
#pragma GCC unroll 16
    for (int j = 0; j < lanes; ++j) {
      __builtin_prefetch(from + (lanes + j) * stride + k, 0, near_cache);
      square[j] = load(from + j * stride + k);
    }
    transpose(square);
#pragma GCC unroll 16
    for (int r = 0; r < lanes; ++r) store(square[r], out + (k + r) * width);
  }
  for (; k < depth; ++k)
    for (int j = 0; j < lanes; ++j) out[k * width + j] = from[j * stride + k];
}

/// Up to `lanes` columns, with zeros behind the last.
void pack_vector(const MatrixView& b, std::int64_t depth, std::int64_t columns, float* out) {
  constexpr int width = tile_vectors * lanes;
  if (columns == lanes && b.row_stride == 1) return pack_columns(b.data, b.column_stride, depth, out);
  for (std::int64_t k = 0; k < depth; ++k, out += width) {
    const float* const row = b.data + k * b.row_stride;
    for (std::int64_t j = 0; j < columns; ++j) out[j] = row[j * b.column_stride];
    for (std::int64_t j = columns; j < lanes; ++j) out[j] = 0;
  }
}

void pack(const MatrixView& b, std::int64_t depth, std::int64_t columns, float* out) {
  constexpr int width = tile_vectors * lanes;
  if (columns < width) {
    for (std::int64_t j = 0; j < width; j += lanes)
      pack_vector({b.data + j * b.column_stride, b.row_stride, b.column_stride}, depth,
                  j < columns ? (columns - j < lanes ? columns - j : lanes) : 0, out + j);
    return;
  }
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

template <int... e>
Vector even_of(const Vector& a, const Vector& b, std::integer_sequence<int, e...>) {
  return __builtin_shufflevector(a, b, (2 * e)...);
}

/// Neighbours that are `step` apart; 0: any number, `distance`.
template <int step>
Vector spread(const float* from, std::int64_t distance) {
  if constexpr (step == 1) return load(from);
  if constexpr (step == 2)
    return even_of(load(from), load(from + lanes), std::make_integer_sequence<int, lanes>());
  Vector out;
  for (int i = 0; i < lanes; ++i) out[i] = from[i * distance];
  return out;
}

/// Rows that are computed at once: a sum waits for the one before.
constexpr int image_rows = 4;

template <int step, int rows>
void weigh(const GemmKernel::Image& image, const float* in, float* out) {
  Vector sum[rows];
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) sum[r] = Vector{} + image.start;
  for (std::int64_t t = 0; t < image.taps; ++t)
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r)
      sum[r] +=
          image.weights[t] * spread<step>(in + image.offsets[t] + r * image.row_step, image.column_step);
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) store(sum[r], out + r * image.out_stride);
}

template <int step, int rows>
void take_largest(const GemmKernel::Image& image, const float* in, float* out) {
  Vector best[rows];
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) best[r] = Vector{} + image.start;
  for (std::int64_t t = 0; t < image.taps; ++t)
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
      const Vector value = spread<step>(in + image.offsets[t] + r * image.row_step, image.column_step);
      const auto stays = (best[r] >= value) | (best[r] != best[r]);
      best[r] = stays ? best[r] : value;
    }
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) store(best[r], out + r * image.out_stride);
}

template <int step, int rows>
void filter_rows(const GemmKernel::Image& image, std::int64_t row, std::int64_t column) {
  const float* const in = image.in + row * image.row_step + column * image.column_step;
  float* const out = image.out + row * image.out_stride + column;
  return image.weights != nullptr ? weigh<step, rows>(image, in, out)
                                  : take_largest<step, rows>(image, in, out);
}

template <int step>
void filter_by(const GemmKernel::Image& image) {
  for (std::int64_t column = 0; column < image.columns; column += lanes) {
    std::int64_t row = 0;
    for (; row + image_rows <= image.rows; row += image_rows)
      filter_rows<step, image_rows>(image, row, column);
    for (; row < image.rows; ++row) filter_rows<step, 1>(image, row, column);
  }
}

void filter(const GemmKernel::Image& image) {
  return image.column_step == 1   ? filter_by<1>(image)
         : image.column_step == 2 ? filter_by<2>(image)
                                  : filter_by<0>(image);
}

}  // namespace

GemmKernel kernel() {
  GemmKernel out{.rows = tile_rows, .columns = tile_vectors * lanes, .vector = lanes};
  out.copying = multiply<tile_rows, tile_vectors, true>;
  out.copying_update = multiply<tile_rows, tile_vectors, true, true>;
  out.pack = pack;
  out.filter = filter;
  [&]<int... i>(std::integer_sequence<int, i...>) {
    ((out.function[i + 1] = multiply<i + 1, tile_vectors>), ...);
    ((out.narrow[i + 1] = multiply<i + 1, 1>), ...);
    ((out.updating[i + 1] = multiply<i + 1, tile_vectors, false, true>), ...);
  }
  (std::make_integer_sequence<int, tile_rows>());
  return out;
}

}  // namespace tessera::runtime::cpu::TESSERA_GEMM
