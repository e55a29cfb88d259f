// The product of matrices.
#include "tessera/op/families/make.h"
#include "tessera/op/matrix_product.h"
#include "tessera/op/wide_buffer.h"
#include "tessera/op/work.h"

using namespace tessera;
using namespace tessera::op;

namespace {

// An operand of rank 1 takes part as a matrix of one row (on the left) or one column (on the right), and the
// axis that this adds is not in the result.

Shape matrix_shape(const Shape& shape, bool left) {
  if (shape.size() != 1) return shape;
  return left ? Shape{1, shape[0]} : Shape{shape[0], 1};
}

/// The shape of the product with both operands as matrices.
Result<Shape> product_shape(const CallInfo& call) {
  const ValueType &a = call.input(0), &b = call.input(1);
  if (a.rank() == 0 || b.rank() == 0)
    return call.error("'", a.rank() == 0 ? "a" : "b", "' has rank 0, expected at least 1 (a is ", a,
                      ", b is ", b, ")");
  const Shape left = matrix_shape(a.shape, true), right = matrix_shape(b.shape, false);
  if (const Dim& m = left[left.size() - 1], &n = right[right.size() - 2]; m != n)
    TESSERA_TRY(call.unify(m, n,
                           cat("axis ", a.rank() - 1, " of 'a' (", a, ") and axis ",
                               b.rank() < 2 ? 0 : b.rank() - 2, " of 'b' (", b, ")")));
  const Shape left_batch = batch_of(left), right_batch = batch_of(right);
  auto batch = call.broadcast(left_batch, right_batch, "the batch of 'a'", "the batch of 'b'");
  if (!batch)
    return call.error("the batch sizes ", left_batch, " of 'a' (", a, ") and ", right_batch, " of 'b' (", b,
                      ") do not agree");
  Shape out = *std::move(batch);
  out.push_back(left[left.size() - 2]);
  out.push_back(right[right.size() - 1]);
  return out;
}

Result<ValueTypes> infer_matmul(const CallInfo& call) {
  Shape shape = TESSERA_TRY(product_shape(call));
  if (call.input(0).rank() == 1) shape.erase(shape.end() - 2);
  if (call.input(1).rank() == 1) shape.pop_back();
  return ValueTypes{{call.input(0).dtype, std::move(shape)}};
}

Extents matrix_extents(const Array& array, bool left) {
  const Extents& shape = array.shape();
  if (shape.size() != 1) return shape;
  return left ? Extents{1, shape[0]} : Extents{shape[0], 1};
}

Result<void> run_matmul(const CallInfo& call, std::span<const Array> inputs, std::span<const Array> results) {
  const Extents left = matrix_extents(inputs[0], true), right = matrix_extents(inputs[1], false);
  const std::int64_t rows = left[left.size() - 2], depth = left[left.size() - 1],
                     columns = right[right.size() - 1];
  const Shape product = TESSERA_TRY(product_shape(call));
  const Extents batch = *ir::constant_shape(batch_of(product));
  const Layout a_at = batch_layout(left, batch), b_at = batch_layout(right, batch), all = contiguous(batch);
  return visit_wide(inputs[0].dtype, [&]<class W>(W*) -> Result<void> {
    const auto a = TESSERA_TRY(WideBuffer<W>::load(inputs[0]));
    const auto b = TESSERA_TRY(WideBuffer<W>::load(inputs[1]));
    auto y = TESSERA_TRY(WideBuffer<W>::zeros(results[0].size()));
    for_each_offset<3>(batch, {&a_at, &b_at, &all}, [&](const auto& at) {
      add_product<W>({.rows = rows,
                      .columns = columns,
                      .depth = depth,
                      .a = a.data() + at[0],
                      .a_row = depth,
                      .b = b.data() + at[1],
                      .b_depth = columns,
                      .c = y.data() + at[2] * rows * columns,
                      .c_row = columns});
    });
    y.store(results[0]);
    return {};
  });
}

double work_of_matmul(const CallInfo& call, const ValueTypes& results) {
  return element_estimate(results[0].shape) * static_cast<double>(call.input(0).shape.back().value());
}

Values gradient_matmul(GradientCall& g) {
  const Shape left = matrix_shape(g.x(0).shape(), true), right = matrix_shape(g.x(1).shape(), false);
  const Value a = reshape(g.x(0), left), b = reshape(g.x(1), right);
  Shape shape = g.dy().shape();
  if (g.x(1).rank() == 1) shape.push_back(1);
  if (g.x(0).rank() == 1) shape.insert(shape.end() - 1, 1);
  const Value dy = reshape(g.dy(), shape);
  const Value da = sum_to(matmul(dy, transpose_matrix(b)), left);
  Value db;
  if (right.size() == 2 && left.size() > 2) {
    // One product over all batches instead of many and a sum.
    const Dim rows = ir::product(Shape(left.begin(), left.end() - 1));
    db = matmul(transpose_matrix(reshape(a, {rows, left[left.size() - 1]})), reshape(dy, {rows, right[1]}));
  } else {
    db = sum_to(matmul(transpose_matrix(a), dy), right);
  }
  return {reshape(da, g.x(0).shape()), reshape(db, g.x(1).shape())};
}

constexpr Card matmul_family[] = {
    {.name = "matmul",
     .summary = "product of matrices by NumPy's rules: batches broadcast, operands of rank 1 are vectors",
     .inputs = inputs_ab,
     .T = number_dtypes,
     .traits = {.costly = true},
     .onnx = {"MatMul"},
     .spellings = "@ bmm mm",
     .oracle = "torch:matmul",
     .infer = infer_matmul,
     .reference = run_matmul,
     .gradient = gradient_matmul,
     .work = work_of_matmul},
};

}  // namespace

std::span<const Card> tessera::op::matmul_cards() { return matmul_family; }
