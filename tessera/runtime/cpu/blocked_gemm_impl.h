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

template <int rows>
void multiply(const float* a, const float* b, std::int64_t b_stride, std::int64_t depth, float* c,
              std::int64_t c_stride, bool is_first) {
  Vector sum[rows][tile_vectors] = {};
  for (std::int64_t k = 0; k < depth; ++k) {
    Vector row[tile_vectors];
#pragma GCC unroll 16
    for (int v = 0; v < tile_vectors; ++v) row[v] = load(b + k * b_stride + v * lanes);
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
      const float factor = a[k * rows + i];
#pragma GCC unroll 16
      for (int v = 0; v < tile_vectors; ++v) sum[i][v] += factor * row[v];
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 16
    for (int v = 0; v < tile_vectors; ++v) {
      float* const at = c + i * c_stride + v * lanes;
      store(is_first ? sum[i][v] : load(at) + sum[i][v], at);
    }
  }
}

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
  GemmKernel out{tile_rows, tile_vectors * lanes, {}, filter};
  [&]<int... i>(std::integer_sequence<int, i...>) { ((out.function[i + 1] = multiply<i + 1>), ...); }
  (std::make_integer_sequence<int, tile_rows>());
  return out;
}

}  // namespace tessera::runtime::cpu::TESSERA_GEMM
