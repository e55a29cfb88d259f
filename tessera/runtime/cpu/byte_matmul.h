// Exact matrix products of integers that are close enough together to be bytes: quantised models have no
// others. Three times as fast as products of f32 where the processor multiplies bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tessera/kernel/interpreter.h"
#include "tessera/runtime/cpu/onednn.h"

namespace tessera::runtime::cpu {

/// batch × rows × depth by depth × columns, or by one such matrix for each of the batch. All without gaps.
struct ByteMatmulSizes {
  std::int64_t batch = 1, rows = 0, columns = 0, depth = 0;
  std::int64_t right_stride = 0;  ///< from one matrix on the right to the next; 0: there is only one
};

/// Integers that are close enough together, as bytes.
struct ByteMatrix {
  std::vector<std::int8_t> bytes;
  std::int8_t zero = 0;  ///< what was added to the elements
};

/// One thread at a time, but for run().
class ByteMatmul {
 public:
  /// `onednn` multiplies bytes exactly.
  ByteMatmul(const OneDnn& onednn, const ByteMatmulSizes& sizes);

  /// False if the elements do not fit: then nothing can be run.
  [[nodiscard]] bool read_left(std::span<const std::int32_t> from);
  /// The elements without `less`, if they fit; Integer is std::int32_t, std::int8_t or std::uint8_t.
  template <class Integer>
  [[nodiscard]] static std::optional<ByteMatrix> right_of(std::span<const Integer> from, std::int32_t less);
  /// Before run(), during which it lives.
  void set_right(const ByteMatrix& right) { right_ = &right; }

  [[nodiscard]] std::int64_t items() const { return sizes_.batch * row_blocks_ * panels_; }
  /// Threads may run disjoint ranges at once.
  [[nodiscard]] Result<void> run(std::int32_t* result, kernel::ItemRange range) const;

 private:
  const OneDnn& onednn_;
  ByteMatmulSizes sizes_;
  std::int64_t panels_ = 1, panel_columns_ = 0;
  std::int64_t row_blocks_ = 1;
  std::vector<std::uint8_t> left_;
  const ByteMatrix* right_ = nullptr;
  std::uint8_t left_zero_ = 0;  ///< what was added to the elements
};

}  // namespace tessera::runtime::cpu
