#include "tessera/runtime/cpu/matmul_split.h"

#include <algorithm>
#include <cmath>

#include "tessera/base/rounding.h"
#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::runtime::cpu;

namespace {

constexpr std::int64_t column_step = 64, row_step = 16;
/// Of products of few rows, which wait for their weights: long lines of these are read faster.
constexpr std::int64_t wide_step = 256;
constexpr std::int64_t most_column_panels = 8, most_items = 64;
/// Of a block. Long ones run faster; they are shorter only where there would be few items.
constexpr std::int64_t good_rows = 64, least_rows = 16, few_items = 4;
/// Weights of a panel: reading fewer takes no longer than starting a call.
constexpr std::int64_t least_panel_size = 65536;
/// The results of a panel are copied: where few numbers are summed up, that takes long.
constexpr std::int64_t least_panel_depth = 128;
/// Rows that our own product reads again for every panel of columns.
constexpr std::int64_t most_rows_in_cache = 512;
/// Results that stay in the second cache until they are copied.
constexpr std::int64_t most_tile_size = 65536;
/// Elements that a thread holds of our own product: blocks of whole rows that have more are cut into panels.
constexpr std::int64_t most_held_size = std::int64_t{1} << 20;
/// Weights that caches do not hold, of sums that are long enough to be worth waiting for them less often.
constexpr std::int64_t least_large_weights = std::int64_t{1} << 21, least_large_depth = 512;
constexpr std::int64_t large_items_per_thread = 4;
constexpr double good_seconds = 50e-6, least_seconds = 20e-6, call_seconds = 10e-6;

/// Threads mostly come in even numbers: with an odd number of parts one would be idle at the end.
std::int64_t evened(std::int64_t parts) { return parts > 1 ? rounded_up(parts, 2) : parts; }

/// About how long a product takes.
double seconds(double rows, double columns, double depth) {
  return 2.0 * rows * columns * depth / 100e9 +
         4.0 * (rows * depth + columns * depth + rows * columns) / 40e9;
}

/// An axis of one element may have any stride: the one that makes rows or columns contiguous.
MatrixForm with_plain_strides(MatrixForm form, std::int64_t rows, std::int64_t columns) {
  if (rows == 1) form.row_stride = form.column_stride == 1 ? columns : 1;
  if (columns == 1) form.column_stride = form.row_stride == 1 ? rows : 1;
  return form;
}

bool goes_on(const MatrixForm& form, std::int64_t rows) {
  return form.batch_stride == rows * form.row_stride;
}

/// A batch that shares b and whose rows go on from matrix to matrix is one matrix.
void join_batch(MatmulSpec& spec) {
  const bool has_separate = spec.epilogue.residual == Residual::separate;
  if (spec.batch == 1 || spec.b.batch_stride != 0 || spec.epilogue.bias_of_rows ||
      !goes_on(spec.a, spec.rows) || !goes_on(spec.c, spec.rows) ||
      (has_separate && !goes_on(spec.residual, spec.rows)))
    return;
  spec.rows *= spec.batch;
  spec.batch = 1;
}

Result<void> check_sizes(const MatmulSpec& spec) {
  const auto text = [&] { return cat(spec.batch, " x ", spec.rows, " x ", spec.columns, " x ", spec.depth); };
  if (spec.batch < 0 || spec.rows < 0 || spec.columns < 0 || spec.depth < 0)
    return Error(ErrorCode::invalid_argument,
                 cat("matrix product of sizes ", text(), ": a size is negative"));
  std::int64_t left = 0, right = 0, result = 0;
  if (__builtin_mul_overflow(spec.rows, spec.depth, &left) ||
      __builtin_mul_overflow(spec.depth, spec.columns, &right) ||
      __builtin_mul_overflow(spec.rows, spec.columns, &result) ||
      __builtin_mul_overflow(std::max({left, right, result}), spec.batch * 4, &result))
    return Error(ErrorCode::limit, cat("matrix product of sizes ", text(), " is too large"));
  return {};
}

}  // namespace

Result<MatmulSpec> tessera::runtime::cpu::normalised(const MatmulSpec& spec) {
  TESSERA_TRY(check_sizes(spec));
  MatmulSpec out = spec;
  if (out.batch == 0 || out.rows == 0 || out.columns == 0) {
    out.row_block = 0;
    return out;
  }
  // A single row has any stride: the one by which the batch goes on.
  if (out.rows == 1 && out.batch > 1) out.a.row_stride = out.a.batch_stride;
  const auto result_form = [&](const MatrixForm& form) {
    MatrixForm dense = form;
    if (out.columns == 1) dense.column_stride = 1;
    if (out.rows == 1) dense.row_stride = out.columns;
    return dense;
  };
  out.c = result_form(out.c);
  out.residual = result_form(out.residual);
  join_batch(out);
  out.row_block = out.batch == 1 ? std::min(out.row_block, out.rows) : 0;
  out.a = with_plain_strides(out.a, out.rows, out.depth);
  out.b = with_plain_strides(out.b, out.depth, out.columns);
  return out;
}

std::int64_t tessera::runtime::cpu::panel_width(std::int64_t columns, std::int64_t depth) {
  if (depth < least_panel_depth) return columns;
  const std::int64_t panels =
      std::min(evened(divided_up(columns * depth, least_panel_size)), most_column_panels);
  std::int64_t width = rounded_up(divided_up(columns, panels), column_step);
  // A library lays narrow panels out in another order.
  while (width < columns && columns % width != 0 && columns % width < column_step) width += column_step;
  return std::min(columns, width);
}

namespace {

/// Whether rows are shared out, not columns. Weights that are not packed are put in order by every item.
bool has_rows(const MatmulSpec& spec) {
  return spec.rows >= (spec.weights == WeightForm::packed ? 2 * least_rows : 2 * good_rows);
}

std::int64_t block_rows(const MatmulSpec& spec, const MatmulSplit& split) {
  if (split.batch > 1) return spec.rows;
  const double panel = seconds(static_cast<double>(spec.rows), static_cast<double>(split.columns),
                               static_cast<double>(spec.depth));
  const std::int64_t good = std::min<std::int64_t>(
      {std::llround(panel / good_seconds), spec.rows / good_rows, most_items / split.panels});
  const std::int64_t more = std::min<std::int64_t>(
      {std::llround(panel / least_seconds), spec.rows / least_rows, few_items / split.panels});
  const std::int64_t blocks = std::max<std::int64_t>(evened(std::max(good, more)), 1);
  std::int64_t rows = rounded_up(divided_up(spec.rows, blocks), row_step);
  if (split.panels > 1)
    rows = std::min(rows, std::max(good_rows, most_tile_size / split.columns / row_step * row_step));
  return std::min(spec.rows, rows);
}

MatmulSplit split_in_width(const MatmulSpec& spec, std::int64_t width) {
  MatmulSplit out;
  out.columns = width;
  out.panels = divided_up(spec.columns, out.columns);
  const double whole = seconds(static_cast<double>(spec.rows), static_cast<double>(spec.columns),
                               static_cast<double>(spec.depth));
  // Many small products are run by one call.
  if (spec.batch > 1 && whole < least_seconds && out.panels == 1) {
    const auto batch = static_cast<double>(spec.batch);
    const std::int64_t blocks = evened(std::llround(std::min(whole * batch / call_seconds, batch)));
    out.batch = divided_up(spec.batch, std::clamp<std::int64_t>(blocks, 1, spec.batch));
  }
  out.batch_blocks = divided_up(spec.batch, out.batch);
  out.rows = block_rows(spec, out);
  out.row_blocks = divided_up(spec.rows, out.rows);
  return out;
}

MatmulSplit split_by_rows(const MatmulSpec& spec) {
  return {.rows = spec.row_block,
          .columns = spec.columns,
          .batch_blocks = 1,
          .row_blocks = divided_up(spec.rows, spec.row_block),
          .panels = 1};
}

}  // namespace

MatmulSplit tessera::runtime::cpu::split(const MatmulSpec& spec) {
  if (spec.batch == 0 || spec.rows == 0 || spec.columns == 0) return {};
  if (spec.row_block > 0) return split_by_rows(spec);
  return has_rows(spec) ? split_in_width(spec, spec.columns) : split_for_tiles(spec);
}

std::int64_t tessera::runtime::cpu::large_row_block(const MatmulSpec& spec, unsigned threads) {
  const bool shares_weights = spec.batch == 1 || spec.b.batch_stride == 0;
  if (!shares_weights || spec.depth < least_large_depth || spec.depth * spec.columns < least_large_weights)
    return 0;
  for (const std::int64_t rows : {256, 128})
    if (spec.batch * spec.rows >= rows * large_items_per_thread * threads) return rows;
  return 0;
}

MatmulSplit tessera::runtime::cpu::split_for_tiles(const MatmulSpec& spec) {
  if (spec.batch == 0 || spec.rows == 0 || spec.columns == 0) return {};
  return split_in_width(spec, panel_width(spec.columns, spec.depth));
}

MatmulSplit tessera::runtime::cpu::split_for_own(const MatmulSpec& spec) {
  if (spec.row_block > 0 && spec.row_block * spec.columns <= most_held_size) return split(spec);
  if (spec.weights == WeightForm::packed || spec.batch != 1 || spec.rows == 0 || spec.columns == 0)
    return split_for_tiles(spec);
  const double whole = seconds(static_cast<double>(spec.rows), static_cast<double>(spec.columns),
                               static_cast<double>(spec.depth));
  const std::int64_t wanted = std::clamp<std::int64_t>(
      std::max(std::min<std::int64_t>(std::llround(whole / least_seconds), few_items),
               std::min<std::int64_t>(std::llround(whole / good_seconds), most_items)),
      1, most_items);
  MatmulSplit out;
  const bool has_rows = spec.rows >= few_items * good_rows;
  const std::int64_t parts = has_rows ? 1 : evened(wanted);
  const std::int64_t step = spec.rows < least_rows ? wide_step : column_step;
  out.columns = std::min(spec.columns, rounded_up(divided_up(spec.columns, parts), step));
  out.panels = divided_up(spec.columns, out.columns);
  const std::int64_t blocks =
      std::max({std::min(divided_up(evened(wanted), out.panels), spec.rows / good_rows),
                divided_up(spec.rows, most_rows_in_cache), std::int64_t{1}});
  out.rows = std::min(spec.rows, rounded_up(divided_up(spec.rows, blocks), row_step));
  out.row_blocks = divided_up(spec.rows, out.rows);
  out.batch_blocks = 1;
  return out;
}
