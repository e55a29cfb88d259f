#include "tessera/runtime/cuda/index_text.h"
#include "tessera/runtime/cuda/op_programs.h"
#include "tessera/runtime/cuda/product_text.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

constexpr std::string_view prepare = R"(
    const T* const a_matrix = a + place_of(batch, size, a_step);
    const T* const b_matrix = b + place_of(batch, size, b_step);
    T* const y_matrix = y + batch * rows * columns;
)";
constexpr std::string_view load_a = "value = widen(a_matrix[m * a_row + k * a_depth]);";
constexpr std::string_view load_b = "value = widen(b_matrix[k * b_depth + n * b_column]);";
constexpr std::string_view store = "y_matrix[m * columns + n] = narrow(sum);\n";

/// An operand as matrices: of rank 1 it is one row on the left, one column on the right.
Operand as_matrices(Operand operand, bool left) {
  if (operand.rank() != 1) return operand;
  operand.shape = left ? op::Extents{1, operand.shape[0]} : op::Extents{operand.shape[0], 1};
  operand.strides = left ? op::Extents{0, operand.strides[0]} : op::Extents{operand.strides[0], 0};
  return operand;
}

op::Layout batch_of(const Operand& matrices) {
  return {op::Extents(matrices.shape.begin(), matrices.shape.end() - 2),
          op::Extents(matrices.strides.begin(), matrices.strides.end() - 2), 0};
}

/// By NumPy's broadcasting; that the two agree is known.
op::Extents joint_shape(const op::Extents& a, const op::Extents& b) {
  op::Extents out(std::max(a.size(), b.size()), 1);
  for (const op::Extents* from : {&a, &b})
    for (std::size_t i = 0; i < from->size(); ++i) {
      const std::int64_t size = (*from)[from->size() - 1 - i];
      if (size != 1) out[out.size() - 1 - i] = size;
    }
  return out;
}

bool is_small(const Operand& operand) { return Walk{operand.shape, {operand.strides}}.is_small(); }

}  // namespace

Result<void> runtime::cuda::write_matmul(const op::CallInfo&, ProgramWriter& program) {
  const Operand a = as_matrices(program.input(0), true), b = as_matrices(program.input(1), false);
  const Operand y = program.result(0);
  if (y.size() == 0) return {};
  const op::Layout a_batch = batch_of(a), b_batch = batch_of(b);
  const op::Extents batch = joint_shape(a_batch.shape, b_batch.shape);
  const Walk walk = joined_walk(
      batch, {op::broadcast_layout(a_batch, batch).strides, op::broadcast_layout(b_batch, batch).strides});
  const std::size_t a_last = a.rank() - 1, b_last = b.rank() - 1;
  TiledProduct product{.name = "matmul",
                       .dtype = y.dtype,
                       .batches = walk.points(),
                       .rows = a.shape[a_last - 1],
                       .columns = b.shape[b_last],
                       .depth = a.shape[a_last],
                       .prepare = prepare,
                       .load_a = load_a,
                       .load_b = load_b,
                       .store = store,
                       .a_by_depth = a.strides[a_last] == 1,
                       .b_by_depth = b.strides[b_last] != 1};
  const bool fits = is_small(a) && is_small(b) && Walk{{y.size()}, {}}.is_small();
  product.width = fits ? IndexWidth::narrow : IndexWidth::wide;
  product.describe = [&](KernelWriter& kernel) {
    kernel.pointer("const T", "a", a.memory).pointer("const T", "b", b.memory).pointer("T", "y", y.memory);
    kernel.walk(walk, std::vector<std::string_view>{"a_step", "b_step"}).prelude(place_text());
    kernel.integer("a_row", a.strides[a_last - 1]).integer("a_depth", a.strides[a_last]);
    kernel.integer("b_depth", b.strides[b_last - 1]).integer("b_column", b.strides[b_last]);
  };
  write_product(program, product);
  return {};
}
