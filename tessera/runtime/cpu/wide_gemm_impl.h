// Included behind blocked_gemm_impl.h, once per instruction set: the same tile of registers for numbers of 64
// bits.
#include "tessera/runtime/cpu/wide_gemm.h"

namespace tessera::runtime::cpu::TESSERA_GEMM {
namespace {

constexpr int wide_lanes = vector_bytes / sizeof(double);
constexpr int wide_columns = tile_vectors * wide_lanes;
/// Rows of b that are multiplied at once.
constexpr std::int64_t wide_depth = wide_workspace / wide_columns < 256 ? wide_workspace / wide_columns : 256;

template <class T>
struct Wide {
  using Vector [[gnu::vector_size(vector_bytes)]] = T;

  /// Some rows of `a` by a panel of b, into the tile.
  template <int rows>
  static void multiply(const T* a, const WideProduct<T>& p, const T* panel, std::int64_t depth, T* tile) {
    Vector sum[rows][tile_vectors] = {};
    for (std::int64_t k = 0; k < depth; ++k, panel += wide_columns, a += p.a_depth) {
      Vector b[tile_vectors];
#pragma GCC unroll 16
      for (int v = 0; v < tile_vectors; ++v) std::memcpy(&b[v], panel + v * wide_lanes, sizeof b[v]);
#pragma GCC unroll 16
      for (int i = 0; i < rows; ++i) {
        const T factor = a[i * p.a_row];
#pragma GCC unroll 16
        for (int v = 0; v < tile_vectors; ++v) sum[i][v] += factor * b[v];
      }
    }
    std::memcpy(tile, sum, sizeof sum);
  }

  using Function = void (*)(const T*, const WideProduct<T>&, const T*, std::int64_t, T*);

  /// By the number of rows.
  template <int... i>
  static Function function_of(int rows, std::integer_sequence<int, i...>) {
    static constexpr Function functions[] = {multiply<i + 1>...};
    return functions[rows - 1];
  }

  static void pack(const WideProduct<T>& p, std::int64_t k, std::int64_t depth, std::int64_t column,
                   std::int64_t columns, T* out) {
    const T* from = p.b + k * p.b_depth + column * p.b_column;
    for (std::int64_t d = 0; d < depth; ++d, from += p.b_depth, out += wide_columns)
      for (std::int64_t j = 0; j < wide_columns; ++j) out[j] = j < columns ? from[j * p.b_column] : T(0);
  }

  static void add(const T* tile, T* c, std::int64_t columns, bool is_first) {
    for (std::int64_t j = 0; j < columns; ++j) c[j] = is_first ? tile[j] : c[j] + tile[j];
  }

  static void product(const WideProduct<T>& p, T* workspace) {
    T tile[tile_rows * wide_columns];
    for (std::int64_t column = 0; column < p.columns; column += wide_columns) {
      const std::int64_t columns = p.columns - column < wide_columns ? p.columns - column : wide_columns;
      std::int64_t k = 0;
      do {  // a depth of 0 gives zeros
        const std::int64_t depth = p.depth - k < wide_depth ? p.depth - k : wide_depth;
        pack(p, k, depth, column, columns, workspace);
        for (std::int64_t row = 0; row < p.rows; row += tile_rows) {
          const int rows = static_cast<int>(p.rows - row < tile_rows ? p.rows - row : tile_rows);
          function_of(rows, std::make_integer_sequence<int, tile_rows>())(p.a + row * p.a_row + k * p.a_depth,
                                                                          p, workspace, depth, tile);
          for (int i = 0; i < rows; ++i)
            add(tile + i * wide_columns, p.c + (row + i) * p.c_row + column, columns, k == 0);
        }
        k += wide_depth;
      } while (k < p.depth);
    }
  }
};

}  // namespace

WideGemm wide_gemm() { return {Wide<double>::product, Wide<std::uint64_t>::product}; }

}  // namespace tessera::runtime::cpu::TESSERA_GEMM
