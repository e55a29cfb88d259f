// The one matrix product of the reference: matmul, convolutions and attention are made of it. Plain loops,
// blocked so that what is read again is still in the cache. The order of additions depends on the sizes only.
#pragma once

#include <cstdint>

#include "tessera/op/array.h"
#include "tessera/op/wide.h"

namespace tessera::op {

/// c[i, j] += sum over k of a[i, k] * b[k, j]. Strides count elements; the columns of b and c lie side by
/// side.
template <class W>
struct MatrixProduct {
  std::int64_t rows = 0, columns = 0, depth = 0;
  const W* a = nullptr;
  std::int64_t a_row = 0, a_depth = 1;
  const W* b = nullptr;
  std::int64_t b_depth = 0;
  W* c = nullptr;
  std::int64_t c_row = 0;
};

/// Defined for double, SignedWide and UnsignedWide.
template <class W>
void add_product(const MatrixProduct<W>& product);

/// Where the matrices of an operand lie in its row-major buffer, seen from the batch of the result. `matrix`
/// is the shape of the operand, of rank 2 at least.
[[nodiscard]] Layout batch_layout(const Extents& matrix, const Extents& batch);

/// to[j, i] = from[i, j] for a matrix whose rows are `from_row` apart; `to` has no gaps.
template <class W>
void copy_transposed(const W* from, std::int64_t from_row, std::int64_t rows, std::int64_t columns, W* to) {
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) to[j * rows + i] = from[i * from_row + j];
}

}  // namespace tessera::op
