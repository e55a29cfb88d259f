#include "tessera/runtime/cpu/library_call.h"

#include <algorithm>

using namespace tessera;
using namespace tessera::runtime::cpu;

namespace {

/// The distance between neighbours when all axes before the last two are counted as one; nothing if it is not
/// the same everywhere.
std::optional<std::int64_t> batch_stride(const op::Layout& layout) {
  const std::size_t axes = layout.rank() - 2;
  std::optional<std::int64_t> stride;
  std::int64_t inner = 1;  // how many neighbours one step along the axis passes
  for (std::size_t a = axes; a-- > 0; inner *= layout.shape[a]) {
    if (layout.shape[a] == 1) continue;
    if (!stride) {
      if (layout.strides[a] % inner != 0) return std::nullopt;
      stride = layout.strides[a] / inner;
    }
    if (layout.strides[a] != *stride * inner) return std::nullopt;
  }
  return stride.value_or(0);
}

std::optional<MatrixForm> form_of(const op::Layout& layout) {
  const auto batch = batch_stride(layout);
  if (!batch) return std::nullopt;
  const std::size_t rank = layout.rank();
  return MatrixForm{*batch, layout.strides[rank - 2], layout.strides[rank - 1]};
}

/// Seen with the axes of the result before the last two.
op::Layout with_batch(const op::Layout& layout, const op::Extents& result) {
  op::Extents shape(result.begin(), result.end());
  std::copy(layout.shape.end() - 2, layout.shape.end(), shape.end() - 2);
  return op::broadcast_layout(layout, shape);
}

/// One matrix on the right serves the whole batch: the batch is more rows.
void join_batch(MatmulSpec& spec) {
  const bool rows_go_on = spec.a.batch_stride == spec.rows * spec.a.row_stride &&
                          spec.c.batch_stride == spec.rows * spec.c.row_stride;
  if (spec.batch == 1 || spec.b.batch_stride != 0 || !rows_go_on) return;
  spec.rows *= spec.batch;
  spec.batch = 1;
}

const float* first(const op::Array& array) {
  return reinterpret_cast<const float*>(array.data) + array.layout.offset;
}

}  // namespace

std::optional<MatmulSpec> runtime::cpu::product_of(const op::CallInfo& call,
                                                   std::span<const op::Array> inputs,
                                                   std::span<const op::Array> results) {
  if (call.card().name != "matmul" || inputs[0].dtype != op::Dtype::f32) return std::nullopt;
  if (inputs[0].rank() < 2 || inputs[1].rank() < 2 || results[0].size() == 0) return std::nullopt;
  const op::Extents& shape = results[0].shape();
  const std::size_t rank = shape.size();
  const auto a = form_of(with_batch(inputs[0].layout, shape)),
             b = form_of(with_batch(inputs[1].layout, shape)), c = form_of(results[0].layout);
  if (!a || !b || !c) return std::nullopt;
  MatmulSpec spec{.rows = shape[rank - 2],
                  .columns = shape[rank - 1],
                  .depth = inputs[0].shape()[inputs[0].rank() - 1],
                  .a = *a,
                  .b = *b,
                  .c = *c};
  for (std::size_t i = 0; i + 2 < rank; ++i) spec.batch *= shape[i];
  join_batch(spec);
  return spec;
}

MatmulOperands runtime::cpu::product_operands(std::span<const op::Array> inputs,
                                              std::span<const op::Array> results) {
  return {.a = first(inputs[0]), .b = first(inputs[1]), .c = const_cast<float*>(first(results[0]))};
}
