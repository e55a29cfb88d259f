// The softmax of rows of scores in place, compiled once per instruction set beside our own matrix product.
#pragma once

#include <cstdint>

namespace tessera::runtime::cpu {

/// `rows` rows of `columns` scores that are multiplied by `scale`. Rows begin `stride` apart, with room for
/// whole vectors: what lies behind their last column is not defined after.
struct RowSoftmax {
  float* data = nullptr;
  std::int64_t stride = 0;
  std::int64_t rows = 0, columns = 0;
  float scale = 1;
};

/// By the best code that the processor has.
void softmax_in_place(const RowSoftmax& scores);

namespace gemm_baseline {
void softmax_rows(const RowSoftmax& scores);
}
namespace gemm_v3 {
void softmax_rows(const RowSoftmax& scores);
}
namespace gemm_v4 {
void softmax_rows(const RowSoftmax& scores);
}

}  // namespace tessera::runtime::cpu
