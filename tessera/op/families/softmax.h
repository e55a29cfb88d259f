// The softmax of one row, as the reference computes it: of softmax, log_softmax, attention and cross_entropy.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace tessera::op {

/// Elements `stride` apart.
struct Row {
  double* first = nullptr;
  std::int64_t length = 0, stride = 1;

  double& operator[](std::int64_t i) const { return first[i * stride]; }
};

/// Subtracts the largest element, so that no exponential overflows, and gives the sum of the exponentials.
inline double shift_to_largest(const Row& row) {
  double largest = -std::numeric_limits<double>::infinity(), total = 0;
  for (std::int64_t i = 0; i < row.length; ++i) largest = std::max(largest, row[i]);
  for (std::int64_t i = 0; i < row.length; ++i) total += std::exp(row[i] -= largest);
  return total;
}

inline void softmax_row(const Row& row) {
  const double total = shift_to_largest(row);
  for (std::int64_t i = 0; i < row.length; ++i) row[i] = std::exp(row[i]) / total;
}

inline void log_softmax_row(const Row& row) {
  const double total = std::log(shift_to_largest(row));
  for (std::int64_t i = 0; i < row.length; ++i) row[i] -= total;
}

/// Calls `f(row)` for every row along an axis of a row-major buffer of this shape.
template <class Extents, class F>
void for_each_row(double* data, const Extents& shape, std::size_t axis, F&& f) {
  std::int64_t outer = 1, inner = 1;
  for (std::size_t i = 0; i < axis; ++i) outer *= shape[i];
  for (std::size_t i = axis + 1; i < shape.size(); ++i) inner *= shape[i];
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t i = 0; i < inner; ++i) f(Row{data + o * shape[axis] * inner + i, shape[axis], inner});
}

}  // namespace tessera::op
