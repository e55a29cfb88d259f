// Included behind blocked_gemm_impl.h, once per instruction set: Winograd's method over vectors of channels.
#include "tessera/runtime/cpu/winograd.h"

namespace tessera::runtime::cpu::TESSERA_GEMM {
namespace {

constexpr float near = near_point, far = far_point;
constexpr float near2 = near * near, far2 = far * far;
constexpr int tile_size = 6, tile_results = 4;

/// Six numbers in a row at the six points.
void source_at_points(const Vector* d, Vector* out) {
  const Vector even_near = d[4] - far2 * d[2], odd_near = near * (d[3] - far2 * d[1]);
  const Vector even_far = d[4] - near2 * d[2], odd_far = far * (d[3] - near2 * d[1]);
  out[0] = near2 * far2 * d[0] - (near2 + far2) * d[2] + d[4];
  out[1] = even_near + odd_near;
  out[2] = even_near - odd_near;
  out[3] = even_far + odd_far;
  out[4] = even_far - odd_far;
  out[5] = near2 * far2 * d[1] - (near2 + far2) * d[3] + d[5];
}

/// Four numbers in a row from the products at the six points.
void result_of_points(const Vector* m, Vector* out) {
  const Vector near_sum = m[1] + m[2], near_difference = m[1] - m[2];
  const Vector far_sum = m[3] + m[4], far_difference = m[3] - m[4];
  out[0] = m[0] + near_sum + far_sum;
  out[1] = near * near_difference + far * far_difference;
  out[2] = near2 * near_sum + far2 * far_sum;
  out[3] = near2 * near * near_difference + far2 * far * far_difference + m[5];
}

/// Columns first, then rows.
void source_points(const WinogradKernel::Tiles& tiles) {
  const float* in = tiles.rows;
  for (std::int64_t t = 0; t < tiles.count; ++t, in += tile_results * lanes) {
    Vector half[tile_size][tile_size];  // by row, then by column
#pragma GCC unroll 6
    for (int x = 0; x < tile_size; ++x) {
      Vector column[tile_size], out[tile_size];
#pragma GCC unroll 6
      for (int y = 0; y < tile_size; ++y) column[y] = load(in + y * tiles.row_stride + x * lanes);
      source_at_points(column, out);
#pragma GCC unroll 6
      for (int y = 0; y < tile_size; ++y) half[y][x] = out[y];
    }
    float* const to = tiles.points + t * tiles.tile_stride;
#pragma GCC unroll 6
    for (int y = 0; y < tile_size; ++y) {
      Vector out[tile_size];
      source_at_points(half[y], out);
#pragma GCC unroll 6
      for (int x = 0; x < tile_size; ++x) store(out[x], to + (tile_size * y + x) * tiles.point_stride);
    }
  }
}

void result_numbers(const WinogradKernel::Tiles& tiles) {
  float* to = tiles.rows;
  for (std::int64_t t = 0; t < tiles.count; ++t, to += tile_results * lanes) {
    const float* const from = tiles.points + t * tiles.tile_stride;
    Vector half[tile_results][tile_size];
#pragma GCC unroll 6
    for (int x = 0; x < tile_size; ++x) {
      Vector column[tile_size], out[tile_results];
#pragma GCC unroll 6
      for (int y = 0; y < tile_size; ++y) column[y] = load(from + (tile_size * y + x) * tiles.point_stride);
      result_of_points(column, out);
#pragma GCC unroll 4
      for (int y = 0; y < tile_results; ++y) half[y][x] = out[y];
    }
#pragma GCC unroll 4
    for (int y = 0; y < tile_results; ++y) {
      Vector out[tile_results];
      result_of_points(half[y], out);
#pragma GCC unroll 4
      for (int x = 0; x < tile_results; ++x) store(out[x], to + y * tiles.row_stride + x * lanes);
    }
  }
}

/// As many columns as a vector has lanes, from vectors that begin `stride` apart to others.
void turn_square(const float* from, std::int64_t stride, float* to, std::int64_t to_stride) {
  Vector square[lanes];
#pragma GCC unroll 16
  for (int i = 0; i < lanes; ++i) square[i] = load(from + i * stride);
  transpose(square);
#pragma GCC unroll 16
  for (int i = 0; i < lanes; ++i) store(square[i], to + i * to_stride);
}

/// The last square begins where it ends with the row.
void put_together(const WinogradKernel::Row& row) {
  if (row.channels == lanes && row.columns >= lanes) {
    for (std::int64_t x = 0; x < row.columns; x += lanes) {
      const std::int64_t at = x + lanes <= row.columns ? x : row.columns - lanes;
      turn_square(row.apart + at, row.channel_stride, row.together + at * lanes, lanes);
    }
    return;
  }
  for (std::int64_t x = 0; x < row.columns; ++x)
    for (int c = 0; c < lanes; ++c)
      row.together[x * lanes + c] = c < row.channels ? row.apart[c * row.channel_stride + x] : 0.0f;
}

void put_apart(const WinogradKernel::Row& row) {
  for (std::int64_t x = 0; x < row.columns; x += lanes)
    turn_square(row.together + x * lanes, lanes, row.apart + x, row.channel_stride);
}

}  // namespace

WinogradKernel winograd_kernel() { return {lanes, source_points, result_numbers, put_together, put_apart}; }

}  // namespace tessera::runtime::cpu::TESSERA_GEMM
