#include "tessera/runtime/cpu/byte_matmul.h"

#include <algorithm>

#include "tessera/runtime/cpu/integer_bytes.h"

using namespace tessera;
using namespace tessera::runtime::cpu;

namespace {

constexpr std::int64_t rows_of_block = 128;
/// Every product of a panel packs the left operand anew: narrower ones do not pay.
constexpr std::int64_t least_panel = 128, most_byte_panels = 16, panel_step = 16;

}  // namespace

ByteMatmul::ByteMatmul(const OneDnn& onednn, const ByteMatmulSizes& sizes) : onednn_(onednn), sizes_(sizes) {
  row_blocks_ = (sizes.rows + rows_of_block - 1) / rows_of_block;
  panels_ = std::clamp<std::int64_t>(sizes.columns / least_panel, 1, most_byte_panels);
  panel_columns_ = ((sizes.columns + panels_ - 1) / panels_ + panel_step - 1) / panel_step * panel_step;
  panels_ = panel_columns_ == 0 ? 0 : (sizes.columns + panel_columns_ - 1) / panel_columns_;
}

bool ByteMatmul::read_left(std::span<const std::int32_t> from) {
  const auto zero = to_bytes(from, 0, left_);
  left_zero_ = zero.value_or(0);
  return zero.has_value();
}

template <class Integer>
std::optional<ByteMatrix> ByteMatmul::right_of(std::span<const Integer> from, std::int32_t less) {
  ByteMatrix out;
  const auto zero = to_bytes(from, less, out.bytes);
  if (!zero) return std::nullopt;
  out.zero = *zero;
  return out;
}
template std::optional<ByteMatrix> ByteMatmul::right_of(std::span<const std::int32_t>, std::int32_t);
template std::optional<ByteMatrix> ByteMatmul::right_of(std::span<const std::int8_t>, std::int32_t);
template std::optional<ByteMatrix> ByteMatmul::right_of(std::span<const std::uint8_t>, std::int32_t);

Result<void> ByteMatmul::run(std::int32_t* result, kernel::ItemRange range) const {
  for (std::int64_t item = range.begin; item < range.end; ++item) {
    const std::int64_t panel = item % panels_, block = item / panels_ % row_blocks_,
                       matrix = item / panels_ / row_blocks_;
    const std::int64_t row = matrix * sizes_.rows + block * rows_of_block, column = panel * panel_columns_;
    TESSERA_TRY(onednn_.multiply({.rows = std::min(rows_of_block, sizes_.rows - block * rows_of_block),
                                  .columns = std::min(panel_columns_, sizes_.columns - column),
                                  .depth = sizes_.depth,
                                  .a = left_.data() + row * sizes_.depth,
                                  .a_zero = left_zero_,
                                  .b = right_->bytes.data() + matrix * sizes_.right_stride + column,
                                  .b_stride = sizes_.columns,
                                  .b_zero = right_->zero,
                                  .c = result + row * sizes_.columns + column,
                                  .c_stride = sizes_.columns}));
  }
  return {};
}
