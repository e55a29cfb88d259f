#include "tessera/op/matrix_product.h"

#include <algorithm>

#include "tessera/base/run_meter.h"

using namespace tessera;
using namespace tessera::op;

namespace {

// A block of b of this size stays in the second-level cache while all rows of a pass over it.
constexpr std::int64_t block_columns = 256, block_depth = 256;
// Between two looks at the limits of the run: about a millisecond.
constexpr std::int64_t rows_between_looks = 16;

/// The part of a product that one call of a block covers.
struct Block {
  std::int64_t column, column_end, depth, depth_end;
};

/// Two rows of c at once, four steps of the depth at once: 16 operations for 8 accesses to memory.
template <class W>
void add_two_rows(const MatrixProduct<W>& p, std::int64_t row, const Block& block) {
  W* c0 = p.c + row * p.c_row;
  W* c1 = c0 + p.c_row;
  const W* a0 = p.a + row * p.a_row;
  const W* a1 = a0 + p.a_row;
  std::int64_t k = block.depth;
  for (; k + 4 <= block.depth_end; k += 4) {
    const W *b0 = p.b + k * p.b_depth, *b1 = b0 + p.b_depth, *b2 = b1 + p.b_depth, *b3 = b2 + p.b_depth;
    const std::int64_t s = p.a_depth, at = k * s;
    const W p0 = a0[at], p1 = a0[at + s], p2 = a0[at + 2 * s], p3 = a0[at + 3 * s];
    const W q0 = a1[at], q1 = a1[at + s], q2 = a1[at + 2 * s], q3 = a1[at + 3 * s];
    for (std::int64_t j = block.column; j < block.column_end; ++j) {
      const W x0 = b0[j], x1 = b1[j], x2 = b2[j], x3 = b3[j];
      c0[j] = c0[j] + (p0 * x0 + p1 * x1 + (p2 * x2 + p3 * x3));
      c1[j] = c1[j] + (q0 * x0 + q1 * x1 + (q2 * x2 + q3 * x3));
    }
  }
  for (; k < block.depth_end; ++k) {
    const W* b = p.b + k * p.b_depth;
    const W p0 = a0[k * p.a_depth], q0 = a1[k * p.a_depth];
    for (std::int64_t j = block.column; j < block.column_end; ++j) {
      c0[j] = c0[j] + p0 * b[j];
      c1[j] = c1[j] + q0 * b[j];
    }
  }
}

template <class W>
void add_row(const MatrixProduct<W>& p, std::int64_t row, const Block& block) {
  W* c = p.c + row * p.c_row;
  const W* a = p.a + row * p.a_row;
  std::int64_t k = block.depth;
  for (; k + 4 <= block.depth_end; k += 4) {
    const W *b0 = p.b + k * p.b_depth, *b1 = b0 + p.b_depth, *b2 = b1 + p.b_depth, *b3 = b2 + p.b_depth;
    const std::int64_t s = p.a_depth, at = k * s;
    const W p0 = a[at], p1 = a[at + s], p2 = a[at + 2 * s], p3 = a[at + 3 * s];
    for (std::int64_t j = block.column; j < block.column_end; ++j)
      c[j] = c[j] + (p0 * b0[j] + p1 * b1[j] + (p2 * b2[j] + p3 * b3[j]));
  }
  for (; k < block.depth_end; ++k) {
    const W* b = p.b + k * p.b_depth;
    const W p0 = a[k * p.a_depth];
    for (std::int64_t j = block.column; j < block.column_end; ++j) c[j] = c[j] + p0 * b[j];
  }
}

}  // namespace

template <class W>
void tessera::op::add_product(const MatrixProduct<W>& p) {
  for (std::int64_t column = 0; column < p.columns; column += block_columns)
    for (std::int64_t depth = 0; depth < p.depth; depth += block_depth) {
      const Block block{column, std::min(column + block_columns, p.columns), depth,
                        std::min(depth + block_depth, p.depth)};
      std::int64_t row = 0;
      for (; row + 2 <= p.rows; row += 2) {
        if (row % rows_between_looks == 0) RunMeter::check_or_throw();
        add_two_rows(p, row, block);
      }
      if (row < p.rows) add_row(p, row, block);
    }
}

template void tessera::op::add_product(const MatrixProduct<double>&);
template void tessera::op::add_product(const MatrixProduct<SignedWide>&);
template void tessera::op::add_product(const MatrixProduct<UnsignedWide>&);

Layout tessera::op::batch_layout(const Extents& matrix, const Extents& batch) {
  Layout own = contiguous(Extents(matrix.begin(), matrix.end() - 2));
  const std::int64_t elements = matrix[matrix.size() - 2] * matrix[matrix.size() - 1];
  for (std::int64_t& stride : own.strides) stride *= elements;
  return broadcast_layout(own, batch);
}
