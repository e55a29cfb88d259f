#include <gtest/gtest.h>

#include "tests/support/op_call.h"

using namespace tessera;
using namespace tessera::op;
using namespace tessera::fixture;

namespace {

std::string type_of(std::string equation, std::vector<Shape> shapes) {
  ValueTypes types;
  for (Shape& shape : shapes) types.push_back({Dtype::f32, std::move(shape)});
  return inferred("einsum", types, {{"equation", std::move(equation)}});
}

std::vector<double> einsum(std::string equation, const std::vector<HostTensor>& operands) {
  const Attributes attributes{{"equation", std::move(equation)}};
  const HostTensor y = call("einsum", operands, attributes);
  EXPECT_EQ(largest_difference(call_decomposed("einsum", operands, attributes), y), 0);
  return doubles(y);
}

TEST(Einsum, InfersShapes) {
  const Dim N = Dim(ir::size_symbol("N")), M = Dim(ir::size_symbol("M"));
  EXPECT_EQ(type_of("ij,jk->ik", {{N, 3}, {3, M}}), "f32[N, M]");
  EXPECT_EQ(type_of("ji,kj", {{2, 3}, {4, 2}}), "f32[3, 4]") << "sorted";
  EXPECT_EQ(type_of("bA", {{2, 3}}), "f32[3, 2]") << "capitals come first";
  EXPECT_EQ(type_of("...ij, ...jk -> ...ik", {{5, 1, 2, 3}, {N, 3, 4}}), "f32[5, N, 2, 4]");
  EXPECT_EQ(type_of("i...,...", {{2, 3, 4}, {4}}), "f32[3, 4, 2]") << "what '...' stands for comes first";
  EXPECT_EQ(type_of("...->", {{2, 3}}), "f32[]");
  EXPECT_EQ(type_of("", {{}}), "f32[]");
}

TEST(Einsum, SaysWhatIsWrong) {
  EXPECT_EQ(type_of("ij,jk->ik", {{2, 3}}),
            "einsum: equation \"ij,jk->ik\": it has 2 terms, but there are 1 operands");
  EXPECT_EQ(type_of("ijk->k", {{2, 3}}),
            "einsum: equation \"ijk->k\": the term \"ijk\" has 3 letters, but 'operands[0]' (f32[2, 3]) has "
            "rank 2");
  EXPECT_EQ(
      type_of("ij,jk->ik", {{2, 3}, {4, 5}}),
      "einsum: equation \"ij,jk->ik\": 'j' in the operands before and in 'operands[1]' (f32[4, 5]): 3 and "
      "4 do not agree");
  EXPECT_EQ(type_of("ii->i", {{2, 3}}),
            "einsum: equation \"ii->i\": 'i' twice in 'operands[0]' (f32[2, 3]): 2 and 3 do not agree");
  EXPECT_EQ(type_of("ij->ik", {{2, 3}}),
            "einsum: equation \"ij->ik\": the result has 'k', which no operand has");
  EXPECT_EQ(type_of("ij->ii", {{2, 3}}), "einsum: equation \"ij->ii\": the result has 'i' twice");
  EXPECT_EQ(type_of("i1->i", {{2, 3}}),
            "einsum: equation \"i1->i\": unexpected '1' in the term \"i1\", expected letters and at most one "
            "'...'");
  EXPECT_EQ(
      type_of("...i...->i", {{2, 3}}),
      "einsum: equation \"...i...->i\": unexpected '.' in the term \"...i...\", expected letters and at "
      "most one '...'");
  EXPECT_EQ(
      type_of("i->j->i", {{2}}),
      "einsum: equation \"i->j->i\": unexpected '-' in the term \"j->i\", expected letters and at most one "
      "'...'");
}

TEST(Einsum, ComputesKnownValues) {
  const auto a = counting({2, 3}), b = counting({3, 2});
  EXPECT_EQ(einsum("ij,jk->ik", {a, b}), (std::vector<double>{10, 13, 28, 40}));
  EXPECT_EQ(einsum("ij->ji", {a}), (std::vector<double>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(einsum("ij->j", {a}), (std::vector<double>{3, 5, 7}));
  EXPECT_EQ(einsum("ij,ji", {a, b}), std::vector<double>{10 + 40});
  EXPECT_EQ(einsum("i,j->ji", {tensor({2}, {1, 2}), tensor({2}, {3, 5})}),
            (std::vector<double>{3, 6, 5, 10}));
}

TEST(Einsum, TakesDiagonals) {
  const auto square = counting({3, 3});
  EXPECT_EQ(einsum("ii->i", {square}), (std::vector<double>{0, 4, 8}));
  EXPECT_EQ(einsum("ii", {square}), std::vector<double>{12});
  EXPECT_EQ(einsum("iii->i", {counting({2, 2, 2})}), (std::vector<double>{0, 7}));
}

TEST(Einsum, BroadcastsOnes) {
  EXPECT_EQ(einsum("ij,j->ij", {tensor({2, 1}, {2, 3}), tensor({3}, {1, 10, 100})}),
            (std::vector<double>{2, 20, 200, 3, 30, 300}));
  EXPECT_EQ(einsum("ij,j->i", {tensor({2, 1}, {2, 3}), tensor({3}, {1, 10, 100})}),
            (std::vector<double>{222, 333}));
}

TEST(Einsum, OfIntegersWrapsOnce) {
  const auto x = tensor({3}, {100, 100, -100}, Dtype::i8), w = tensor({3}, {2, 3, 4}, Dtype::i8);
  EXPECT_EQ(einsum("i,i", {x, w}), std::vector<double>{100});
}

TEST(Einsum, OverNothingIsZero) {
  EXPECT_EQ(einsum("ij,jk->ik", {counting({1, 0}), counting({0, 2})}), (std::vector<double>{0, 0}));
  EXPECT_EQ(einsum("ij->i", {counting({2, 0})}), (std::vector<double>{0, 0}));
}

}  // namespace
