// An operand as rows along one axis.
#pragma once

#include "tessera/runtime/cuda/program_writer.h"

namespace tessera::runtime::cuda {

struct Rows {
  Walk walk;                ///< over the begins of the rows; strides of the operand, then of the result
  std::int64_t length = 0;  ///< of a row
  std::int64_t step = 1, result_step = 1;

  [[nodiscard]] std::int64_t count() const { return walk.points(); }
  /// Whether each thread should take a row: they are short, or many that lie side by side.
  [[nodiscard]] bool suit_threads() const;
  /// Whether all places of the operand and the result can be counted in 32 bits.
  [[nodiscard]] IndexWidth width() const;
};

/// The rows of `x` along an axis, and where each begins in `y`, which has the same axes; its size along
/// `axis` may differ.
[[nodiscard]] Rows rows_along(const Operand& x, const Operand& y, std::size_t axis);

}  // namespace tessera::runtime::cuda
