// Matrix products of f32 without a library: blocks that fit the caches, columns in panels, a kernel over
// registers for each instruction set. The best that the processor has is chosen once.
//
// Products are joined to sums with one rounding where the processor can.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tessera::runtime::cpu {

/// A matrix in memory; strides count elements and may be any number.
struct MatrixView {
  const float* data = nullptr;
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 1;
};

struct GemmKernel {
  static constexpr std::size_t most_rows = 16;
  /// One call: `a` [rows of the function][depth] by `b` [depth][columns] into `c`, or onto it.
  struct Tile {
    MatrixView a;
    const float* b = nullptr;
    std::int64_t b_stride = 0;  ///< between rows
    std::int64_t depth = 0;
    float* c = nullptr;
    std::int64_t c_stride = 0;
    bool is_first = true;
    /// What is needed next, fetched meanwhile: two lines a row, for each row of b.
    const float* ahead = nullptr;
    std::int64_t ahead_stride = 0;
  };
  using Function = void (*)(const Tile& tile);

  /// Copies a panel `b` [depth][columns] to [depth][columns] without gaps.
  using Pack = void (*)(const MatrixView& b, std::int64_t depth, float* out);

  /// One row of a filtered image: out[x] = sum over t of weights[t] * from[t][x * stride].
  using Filter = void (*)(const float* const* from, const float* weights, std::int64_t taps,
                          std::int64_t stride, std::int64_t count, float* out);

  std::int64_t rows = 0;                  ///< the most that one call computes
  std::int64_t columns = 0;               ///< of every call
  Function function[most_rows + 1] = {};  ///< by the number of rows
  Pack pack = nullptr;
  Filter filter = nullptr;
};

/// The kernel for this processor.
[[nodiscard]] const GemmKernel& gemm_kernel();

namespace gemm_baseline {
[[nodiscard]] GemmKernel kernel();
}
namespace gemm_v3 {
[[nodiscard]] GemmKernel kernel();
}
namespace gemm_v4 {
[[nodiscard]] GemmKernel kernel();
}

/// `columns` rounded up to whole panels.
[[nodiscard]] std::int64_t padded_columns(std::int64_t columns);

/// Copies a matrix into panels of columns, [panel][depth][columns of a panel], with zeros behind the last
/// column. `out` has depth * padded_columns(columns) numbers.
void pack_panels(const MatrixView& b, std::int64_t depth, std::int64_t columns, float* out);

/// Numbers that multiply_blocked needs as workspace for `rows` rows.
[[nodiscard]] std::size_t gemm_workspace(std::int64_t rows);

struct GemmBlock {
  std::int64_t rows = 0, columns = 0, depth = 0;
  MatrixView a, b;
  const float* panels = nullptr;  ///< b as pack_panels left it; null: b is read as it is
};

struct GemmResult {
  float* data = nullptr;
  std::int64_t stride = 0;  ///< between rows
};

/// The product of a block. A row of the result has room for padded_columns(columns) numbers; what is left in
/// those behind the last column is not defined. A depth of 0 gives zeros.
void multiply_blocked(const GemmBlock& block, GemmResult out, float* workspace);

}  // namespace tessera::runtime::cpu
