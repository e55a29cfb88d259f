// Matrix products of f32 without a library: blocks that fit the caches, columns in panels, a kernel over
// registers for each instruction set. The best that the processor has is chosen once.
//
// Products are joined to sums with one rounding where the processor can.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tessera/runtime/cpu/wide_gemm.h"

namespace tessera::runtime::cpu {

/// Rows whose distance is a multiple of so many elements fall on the same few places of the first cache.
inline constexpr std::int64_t bad_distance = 1024;

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
    float* copy = nullptr;  ///< of a copying call: gets the rows of b, as a panel
    /// What is needed next, fetched meanwhile: two lines a row, for each row of b.
    const float* ahead = nullptr;
    std::int64_t ahead_stride = 0;
    /// Of an updating call: `updated` = `addend` + `factor` * `c`.
    const float* addend = nullptr;
    std::int64_t addend_stride = 0;
    float* updated = nullptr;
    std::int64_t updated_stride = 0;
    float factor = 0;
  };
  using Function = void (*)(const Tile& tile);

  /// Copies the columns of `b` to a panel [depth][columns of a panel] without gaps, with zeros behind the
  /// last.
  using Pack = void (*)(const MatrixView& b, std::int64_t depth, std::int64_t columns, float* out);

  /// One image filtered: out[y][x] = start + sum over t of weights[t] * in[offsets[t] + y * row_step + x *
  /// column_step], or the largest of those, where NaN is largest, if there are no weights. Rows of `out` are
  /// `out_stride` apart and written in whole vectors; as many columns of `in` are read.
  struct Image {
    const float* in = nullptr;
    std::int64_t row_step = 0, column_step = 1;
    const std::int64_t* offsets = nullptr;
    const float* weights = nullptr;
    std::int64_t taps = 0;
    std::int64_t rows = 0, columns = 0;
    float start = 0;
    float* out = nullptr;
    std::int64_t out_stride = 0;
  };
  using Filter = void (*)(const Image& image);

  std::int64_t rows = 0;                  ///< the most that one call computes
  std::int64_t columns = 0;               ///< of a call, and of a panel
  std::int64_t vector = 0;                ///< columns of a narrow call
  Function function[most_rows + 1] = {};  ///< by the number of rows
  Function narrow[most_rows + 1] = {};    ///< the same for the first columns of a panel
  Function copying = nullptr;             ///< of the most rows; copies b meanwhile
  Function updating[most_rows + 1] = {};  ///< by the number of rows; also write what is updated
  Function copying_update = nullptr;      ///< both
  Pack pack = nullptr;
  Filter filter = nullptr;
};

/// The kernel for this processor.
[[nodiscard]] const GemmKernel& gemm_kernel();
[[nodiscard]] const WideGemm& wide_gemm();

namespace gemm_baseline {
[[nodiscard]] GemmKernel kernel();
[[nodiscard]] WideGemm wide_gemm();
}  // namespace gemm_baseline
namespace gemm_v3 {
[[nodiscard]] GemmKernel kernel();
[[nodiscard]] WideGemm wide_gemm();
}  // namespace gemm_v3
namespace gemm_v4 {
[[nodiscard]] GemmKernel kernel();
[[nodiscard]] WideGemm wide_gemm();
}  // namespace gemm_v4

/// `columns` rounded up to whole panels.
[[nodiscard]] std::int64_t padded_columns(std::int64_t columns);

/// So many floats, rounded up to whole lines of the cache.
[[nodiscard]] std::size_t whole_lines_of_floats(std::size_t count);

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

/// What follows from a product and is written beside it: `addend` + `factor` * the product. Nothing overlaps.
struct GemmUpdate {
  const float* addend = nullptr;
  std::int64_t addend_stride = 0;  ///< between rows
  GemmResult out;                  ///< of whole panels, as the product is
  float factor = 0;
};

/// The product of a block. Rows of the result are written in whole vectors of the kernel; what is left behind
/// the last column is not defined. A depth of 0 gives zeros. REQUIRES whole panels of columns and a depth
/// above 0 for an update.
void multiply_blocked(const GemmBlock& block, GemmResult out, float* workspace,
                      const GemmUpdate* update = nullptr);

}  // namespace tessera::runtime::cpu
