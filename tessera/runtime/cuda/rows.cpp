#include "tessera/runtime/cuda/rows.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

bool Rows::suit_threads() const {
  constexpr std::int64_t short_row = 32, many_rows = 16384, most_blocks = std::int64_t{1} << 30;
  return length <= short_row || (count() >= many_rows && step != 1) || count() > most_blocks;
}

IndexWidth Rows::width() const {
  Walk all = walk;
  all.shape.push_back(length);
  all.strides[0].push_back(step);
  all.strides[1].push_back(result_step);
  return width_of(all);
}

Rows runtime::cuda::rows_along(const Operand& x, const Operand& y, std::size_t axis) {
  op::Extents begins = x.shape;
  begins[axis] = 1;
  return {joined_walk(begins, {x.strides, y.strides}), x.shape[axis], x.strides[axis], y.strides[axis]};
}
