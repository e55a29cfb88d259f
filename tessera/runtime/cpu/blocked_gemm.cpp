#include "tessera/runtime/cpu/blocked_gemm.h"

#include <algorithm>
#include <cstring>

#include "tessera/runtime/cpu/row_softmax.h"
#include "tessera/runtime/cpu/winograd.h"

using namespace tessera::runtime::cpu;

namespace {

/// Rows of b that are multiplied at once: a panel of them is as large as the first cache, or half of it.
constexpr std::int64_t depth_block = 256;
/// Products of few rows wait for b, which is read along its rows then, so many at once, if those are long.
constexpr std::int64_t few_rows = 2, rows_at_once = 8, long_row = 256;

struct Kernels {
  GemmKernel gemm;
  WideGemm wide;
  void (*softmax)(const RowSoftmax&);
  WinogradKernel winograd;
};

Kernels best_kernels() {
#ifdef TESSERA_X86_GEMM
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return {gemm_v4::kernel(), gemm_v4::wide_gemm(), gemm_v4::softmax_rows, gemm_v4::winograd_kernel()};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return {gemm_v3::kernel(), gemm_v3::wide_gemm(), gemm_v3::softmax_rows, gemm_v3::winograd_kernel()};
#endif
  return {gemm_baseline::kernel(), gemm_baseline::wide_gemm(), gemm_baseline::softmax_rows,
          gemm_baseline::winograd_kernel()};
}

const Kernels& kernels() {
  static const Kernels best = best_kernels();
  return best;
}

/// The part of a matrix that begins at a row and a column.
MatrixView part(const MatrixView& matrix, std::int64_t row, std::int64_t column) {
  return {matrix.data + row * matrix.row_stride + column * matrix.column_stride, matrix.row_stride,
          matrix.column_stride};
}

bool is_read_badly(const GemmBlock& block, const GemmKernel& kernel) {
  return block.a.column_stride == 1 && block.a.row_stride % bad_distance == 0 &&
         block.columns > kernel.columns;
}

/// One panel of columns: where its numbers are and how far apart its rows.
struct Panel {
  const float* data;
  std::int64_t stride;
};

class BlockedProduct {
 public:
  BlockedProduct(const GemmBlock& block, GemmResult out, float* workspace, const GemmUpdate* update)
      : block_(block),
        kernel_(gemm_kernel()),
        out_(out),
        update_(update),
        panel_(workspace),
        rows_(is_read_badly(block, kernel_) ? workspace + depth_block * kernel_.columns : nullptr) {}

  /// Rows `k` to `k + depth` of b.
  void add(std::int64_t k, std::int64_t depth) {
    const MatrixView a = rows_at(k, depth);
    for (std::int64_t j = 0; j < block_.columns; j += kernel_.columns) {
      const Panel panel = panel_at(k, depth, j);
      GemmKernel::Tile tile{.a = a, .b = panel.data, .b_stride = panel.stride, .depth = depth};
      tile.c_stride = out_.stride;
      tile.is_first = k == 0;
      fetch_ahead(k, j, tile);
      const bool updates = update_ != nullptr && k + depth == block_.depth;
      const auto& functions = updates                                ? kernel_.updating
                              : block_.columns - j <= kernel_.vector ? kernel_.narrow
                                                                     : kernel_.function;
      std::int64_t i = 0;
      if (is_copied_meanwhile(j)) {
        tile.c = out_.data + j;
        tile.copy = panel_;
        if (updates) set_update(0, j, tile);
        (updates ? kernel_.copying_update : kernel_.copying)(tile);
        tile.b = panel_;
        tile.b_stride = kernel_.columns;
        i = kernel_.rows;
      }
      for (; i < block_.rows; i += kernel_.rows) {
        tile.a = part(a, i, 0);
        tile.c = out_.data + i * out_.stride + j;
        if (updates) set_update(i, j, tile);
        functions[std::min(kernel_.rows, block_.rows - i)](tile);
        tile.ahead_stride = 0;
      }
    }
  }

 private:
  MatrixView rows_at(std::int64_t k, std::int64_t depth) {
    const MatrixView a = part(block_.a, 0, k);
    if (rows_ == nullptr) return a;
    for (std::int64_t i = 0; i < block_.rows; ++i)
      std::memcpy(rows_ + i * depth_block, a.data + i * a.row_stride,
                  static_cast<std::size_t>(depth) * sizeof(float));
    return {rows_, depth_block, 1};
  }

  Panel panel_at(std::int64_t k, std::int64_t depth, std::int64_t j) {
    if (block_.panels != nullptr)
      return {block_.panels + j * block_.depth + k * kernel_.columns, kernel_.columns};
    const std::int64_t columns = std::min(kernel_.columns, block_.columns - j);
    const MatrixView b = part(block_.b, k, j);
    // A panel that is used once is not worth a copy.
    const bool is_whole = columns == kernel_.columns || columns == kernel_.vector;
    if (block_.rows <= kernel_.rows && is_whole && b.column_stride == 1) return {b.data, b.row_stride};
    if (is_copied_meanwhile(j)) return {b.data, b.row_stride};
    kernel_.pack(b, depth, columns, panel_);
    return {panel_, kernel_.columns};
  }

  /// Whether the first rows are multiplied by b as it lies, while it is copied for the others.
  [[nodiscard]] bool is_copied_meanwhile(std::int64_t j) const {
    return block_.panels == nullptr && block_.b.column_stride == 1 && block_.rows > kernel_.rows &&
           block_.columns - j >= kernel_.columns;
  }

  void set_update(std::int64_t i, std::int64_t j, GemmKernel::Tile& tile) const {
    tile.addend = update_->addend + i * update_->addend_stride + j;
    tile.addend_stride = update_->addend_stride;
    tile.updated = update_->out.data + i * update_->out.stride + j;
    tile.updated_stride = update_->out.stride;
    tile.factor = update_->factor;
  }

  /// The panel behind the one at row `k` and column `j`.
  void fetch_ahead(std::int64_t k, std::int64_t j, GemmKernel::Tile& tile) const {
    tile.ahead = tile.b;
    if (block_.panels != nullptr || block_.b.column_stride != 1) return;
    const bool is_last = j + kernel_.columns >= block_.columns;
    if (is_last && k + depth_block >= block_.depth) return;
    tile.ahead =
        is_last ? part(block_.b, k + depth_block, 0).data : part(block_.b, k, j + kernel_.columns).data;
    tile.ahead_stride = block_.b.row_stride;
  }

  const GemmBlock& block_;
  const GemmKernel& kernel_;
  GemmResult out_;
  const GemmUpdate* update_;
  float* panel_;  ///< room for one panel
  float* rows_;   ///< room for all rows; null: they are read where they are
};

}  // namespace

const GemmKernel& tessera::runtime::cpu::gemm_kernel() { return kernels().gemm; }
const WideGemm& tessera::runtime::cpu::wide_gemm() { return kernels().wide; }
const WinogradKernel& tessera::runtime::cpu::winograd_kernel() { return kernels().winograd; }
void tessera::runtime::cpu::softmax_in_place(const RowSoftmax& scores) { kernels().softmax(scores); }

std::int64_t tessera::runtime::cpu::padded_columns(std::int64_t columns) {
  const std::int64_t width = gemm_kernel().columns;
  return (columns + width - 1) / width * width;
}

std::size_t tessera::runtime::cpu::whole_lines_of_floats(std::size_t count) {
  constexpr std::size_t line = 64 / sizeof(float);
  return (count + line - 1) / line * line;
}

void tessera::runtime::cpu::pack_panels(const MatrixView& b, std::int64_t depth, std::int64_t columns,
                                        float* out) {
  const GemmKernel& kernel = gemm_kernel();
  for (std::int64_t j = 0; j < columns; j += kernel.columns, out += depth * kernel.columns)
    kernel.pack(part(b, 0, j), depth, std::min(kernel.columns, columns - j), out);
}

std::size_t tessera::runtime::cpu::gemm_workspace(std::int64_t rows) {
  return static_cast<std::size_t>(depth_block * (gemm_kernel().columns + rows));
}

void tessera::runtime::cpu::multiply_blocked(const GemmBlock& block, GemmResult out, float* workspace,
                                             const GemmUpdate* update) {
  if (block.depth == 0)
    for (std::int64_t i = 0; i < block.rows; ++i) std::fill_n(out.data + i * out.stride, block.columns, 0.0f);
  BlockedProduct product(block, out, workspace, update);
  const bool is_along_rows = block.columns >= long_row && block.rows <= few_rows && block.panels == nullptr &&
                             block.b.column_stride == 1;
  const std::int64_t step = is_along_rows ? rows_at_once : depth_block;
  for (std::int64_t k = 0; k < block.depth; k += step) product.add(k, std::min(step, block.depth - k));
}
