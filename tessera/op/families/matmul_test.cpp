#include <gtest/gtest.h>

#include "tests/support/op_call.h"

using namespace tessera;
using namespace tessera::op;
using namespace tessera::fixture;

namespace {

std::string product(Shape a, Shape b) { return inferred("matmul", {{Dtype::f32, a}, {Dtype::f32, b}}); }

TEST(Matmul, FollowsTheRulesOfNumPy) {
  const Dim N = Dim(ir::size_symbol("N")), M = Dim(ir::size_symbol("M"));
  EXPECT_EQ(product({2, 3}, {3, 4}), "f32[2, 4]");
  EXPECT_EQ(product({4, 5}, {3, 5, 6}), "f32[3, 4, 6]");
  EXPECT_EQ(product({2, 1, 4, 5}, {3, 5, 6}), "f32[2, 3, 4, 6]");
  EXPECT_EQ(product({5}, {5}), "f32[]");
  EXPECT_EQ(product({5}, {3, 5, 6}), "f32[3, 6]");
  EXPECT_EQ(product({3, 4, 5}, {5}), "f32[3, 4]");
  EXPECT_EQ(product({N, M}, {M, 4}), "f32[N, 4]");
}

TEST(Matmul, SaysWhichSizesDisagree) {
  const Dim N = Dim(ir::size_symbol("N"));
  EXPECT_EQ(product({2, 3}, {5, 4}),
            "matmul: axis 1 of 'a' (f32[2, 3]) and axis 0 of 'b' (f32[5, 4]): 3 and 5 do not agree");
  EXPECT_EQ(product({2, 3}, {5}),
            "matmul: axis 1 of 'a' (f32[2, 3]) and axis 0 of 'b' (f32[5]): 3 and 5 do not agree");
  EXPECT_EQ(product({2, 4, 5}, {3, 5, 6}),
            "matmul: the batch sizes [2] of 'a' (f32[2, 4, 5]) and [3] of 'b' (f32[3, 5, 6]) do not agree");
  EXPECT_EQ(product({}, {3}), "matmul: 'a' has rank 0, expected at least 1 (a is f32[], b is f32[3])");
  EXPECT_EQ(
      product({2, 3}, {N, 4}),
      "matmul: axis 1 of 'a' (f32[2, 3]) and axis 0 of 'b' (f32[N, 4]): cannot tell whether 3 and N agree");
  EXPECT_EQ(inferred("matmul", {{Dtype::f32, {2, 3}}, {Dtype::f64, {3, 2}}}),
            "matmul: inputs 'a' and 'b' have different dtypes: f32 and f64");
  EXPECT_EQ(product({1 << 30, 1 << 20, 0}, {1 << 30, 0, 1 << 20}),
            "matmul: a result of shape [1073741824, 1048576, 1048576] has too many elements");
}

TEST(Matmul, ComputesKnownValues) {
  const auto y = call("matmul", {counting({2, 3}), counting({3, 2})});
  EXPECT_EQ(doubles(y), (std::vector<double>{10, 13, 28, 40}));
  EXPECT_EQ(doubles(call("matmul", {counting({3}), counting({3})})), std::vector<double>{5});
  EXPECT_EQ(doubles(call("matmul", {counting({3}), counting({3, 2})})), (std::vector<double>{10, 13}));
  EXPECT_EQ(doubles(call("matmul", {counting({2, 3}), counting({3})})), (std::vector<double>{5, 14}));
  const auto batched = call("matmul", {tensor({1, 2}, {1, 10}), counting({2, 2, 2})});
  EXPECT_EQ(batched.shape(), (Extents{2, 1, 2}));
  EXPECT_EQ(doubles(batched), (std::vector<double>{20, 31, 64, 75}));
}

TEST(Matmul, AccumulatesWideAndWraps) {
  const auto narrow =
      call("matmul", {tensor({1, 3}, {100, 100, -100}, Dtype::i8), tensor({3, 1}, {2, 3, 4}, Dtype::i8)});
  EXPECT_EQ(doubles(narrow), std::vector<double>{100});
  const auto bytes =
      call("matmul", {tensor({1, 2}, {200, 100}, Dtype::u8), tensor({2, 1}, {2, 1}, Dtype::u8)});
  EXPECT_EQ(doubles(bytes), std::vector<double>{244}) << "500 modulo 256";
  // In f16 the partial sum 2048 + 1 would be lost.
  const auto half =
      call("matmul", {tensor({1, 3}, {2048, 1, -2048}, Dtype::f16), tensor({3, 1}, {1, 1, 1}, Dtype::f16)});
  EXPECT_EQ(doubles(half), std::vector<double>{1});
}

TEST(Matmul, OfNothingIsZero) {
  const auto y = call("matmul", {counting({2, 0}), counting({0, 2})});
  EXPECT_EQ(doubles(y), (std::vector<double>{0, 0, 0, 0}));
  EXPECT_EQ(call("matmul", {counting({0, 3}), counting({3, 2})}).shape(), (Extents{0, 2}));
}

TEST(Matmul, BlocksAgreeWithPlainLoops) {
  const std::int64_t rows = 5, depth = 519, columns = 261;
  const auto a = counting({rows, depth}, -3, 0.01), b = counting({depth, columns}, 2, -0.001);
  const auto y = doubles(call("matmul", {a, b}));
  const auto x = a.values<double>(), w = b.values<double>();
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) {
      double total = 0;
      for (std::int64_t k = 0; k < depth; ++k)
        total += x[static_cast<std::size_t>(i * depth + k)] * w[static_cast<std::size_t>(k * columns + j)];
      ASSERT_NEAR(y[static_cast<std::size_t>(i * columns + j)], total, 1e-9 * std::abs(total))
          << i << " " << j;
    }
}

}  // namespace
