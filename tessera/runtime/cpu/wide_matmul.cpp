#include "tessera/runtime/cpu/wide_matmul.h"

#include <algorithm>
#include <vector>

#include "tessera/runtime/cpu/blocked_gemm.h"
#include "tessera/runtime/cpu/element_offset.h"

using namespace tessera;
using namespace tessera::runtime::cpu;

namespace {

/// Of an item. Each puts its columns of b in order for itself, so that there should be many rows.
constexpr std::int64_t item_rows = 112, item_columns = 256;

/// The layout of an operand without its two last axes, seen from the batch of the result.
op::Layout batch_of(const op::Layout& operand, const op::Extents& batch) {
  op::Layout own = operand;
  own.shape.resize(own.shape.size() - 2);
  own.strides.resize(own.strides.size() - 2);
  return op::broadcast_layout(own, batch);
}

std::int64_t back(const op::Extents& numbers, std::size_t i) { return numbers[numbers.size() - i]; }

/// The product of a call, cut into items: one matrix of the batch, some rows, some columns.
template <class T>
class WideMatmul {
 public:
  WideMatmul(const op::Array& a, const op::Array& b, const op::Array& c)
      : rows_(back(c.shape(), 2)), columns_(back(c.shape(), 1)), a_(a), b_(b), c_(c) {
    op::Extents batch = c.shape();
    batch.resize(batch.size() - 2);
    a_batch_ = batch_of(a.layout, batch);
    b_batch_ = batch_of(b.layout, batch);
    c_batch_ = batch_of(c.layout, batch);
    row_blocks_ = (rows_ + item_rows - 1) / item_rows;
    column_blocks_ = (columns_ + item_columns - 1) / item_columns;
  }

  [[nodiscard]] std::int64_t items() const {
    return op::element_count(c_batch_.shape) * row_blocks_ * column_blocks_;
  }

  template <class Multiply>
  void run(std::int64_t item, Multiply multiply, T* workspace) const {
    const std::int64_t column = item % column_blocks_ * item_columns;
    const std::int64_t row = item / column_blocks_ % row_blocks_ * item_rows;
    const std::int64_t matrix = item / column_blocks_ / row_blocks_;
    WideProduct<T> part{.rows = std::min(item_rows, rows_ - row),
                        .columns = std::min(item_columns, columns_ - column),
                        .depth = back(a_.shape(), 1),
                        .a_row = back(a_.layout.strides, 2),
                        .a_depth = back(a_.layout.strides, 1),
                        .b_depth = back(b_.layout.strides, 2),
                        .b_column = back(b_.layout.strides, 1),
                        .c_row = back(c_.layout.strides, 2)};
    part.a = elements(a_) + element_offset(a_batch_, matrix) + row * part.a_row;
    part.b = elements(b_) + element_offset(b_batch_, matrix) + column * part.b_column;
    part.c = elements(c_) + element_offset(c_batch_, matrix) + row * part.c_row + column;
    multiply(part, workspace);
  }

 private:
  static T* elements(const op::Array& array) { return reinterpret_cast<T*>(array.data); }

  std::int64_t rows_, columns_, row_blocks_ = 0, column_blocks_ = 0;
  const op::Array &a_, &b_, &c_;
  op::Layout a_batch_, b_batch_, c_batch_;
};

template <class T, class Multiply>
void multiply_all(std::span<const op::Array> inputs, const op::Array& result, Multiply multiply,
                  ThreadPool& threads) {
  const WideMatmul<T> product(inputs[0], inputs[1], result);
  std::vector<T> workspaces(static_cast<std::size_t>(wide_workspace) * threads.size());
  threads.run(product.items(), 1, [&](std::int64_t begin, std::int64_t end, unsigned thread) {
    for (std::int64_t item = begin; item < end; ++item)
      product.run(item, multiply, workspaces.data() + thread * wide_workspace);
  });
}

}  // namespace

Result<bool> runtime::cpu::run_wide_matmul(const op::CallInfo& call, std::span<const op::Array> inputs,
                                           std::span<const op::Array> results, ThreadPool& threads) {
  const op::Dtype dtype = call.input(0).dtype;
  const bool is_product = call.card().name == "matmul" && ir::size_of(dtype) == 8 && inputs[0].rank() >= 2 &&
                          inputs[1].rank() >= 2;
  if (!is_product || back(results[0].layout.strides, 1) != 1) return false;
  if (dtype == op::Dtype::f64)
    multiply_all<double>(inputs, results[0], wide_gemm().doubles, threads);
  else
    multiply_all<std::uint64_t>(inputs, results[0], wide_gemm().integers, threads);
  return true;
}
