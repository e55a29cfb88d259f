#include "tessera/op/arithmetic.h"

#include <gtest/gtest.h>

#include "tessera/op/body.h"
#include "tessera/op/catalogue.h"

using namespace tessera;
using namespace tessera::op;

namespace {

/// Of a call by these types and attributes, whose results have the types that follow from them.
double counted(std::string_view op, const ValueTypes& inputs, const Attributes& given = {}) {
  const Card& card = *find_card(op);
  const Attributes attributes = value_or_throw(complete_attributes(card, given));
  const CallInfo call(card, inputs, attributes);
  const ValueTypes results = value_or_throw(infer(card, inputs, attributes));
  return ArithmeticCounter().operations(call, results);
}

ValueType array_of(std::initializer_list<std::int64_t> sizes) {
  return {Dtype::f32, ir::shape_of(std::vector<std::int64_t>(sizes))};
}

TEST(Arithmetic, CountsTheOperationsOfFormulasForEachElementOfTheResult) {
  EXPECT_EQ(counted("add", {array_of({4, 8}), array_of({8})}), 32);
  EXPECT_EQ(counted("tanh", {array_of({4, 8})}), 32 * ir::info(ir::ScalarOpcode::tanh).work);
  EXPECT_GT(counted("gelu", {array_of({32})}), counted("tanh", {array_of({32})}));
  EXPECT_GT(counted("tanh", {array_of({32})}), 10 * counted("relu", {array_of({32})}));
}

TEST(Arithmetic, CountsReductionsByWhatTheyRunOver) {
  Attributes rows;
  rows.set("axes", std::vector<std::int64_t>{1});
  EXPECT_EQ(counted("sum", {array_of({4, 100})}, rows), 400);
  EXPECT_GT(counted("mean", {array_of({4, 100})}, rows), 400);
}

TEST(Arithmetic, CountsAMultiplyAddOfAProductAsOne) {
  EXPECT_EQ(counted("matmul", {array_of({4, 8}), array_of({8, 16})}), 4 * 8 * 16);
}

TEST(Arithmetic, CountsCompositesByTheirParts) {
  const double softmax = counted("softmax", {array_of({4, 100})}), exp = counted("exp", {array_of({4, 100})});
  EXPECT_GT(softmax, exp + 2 * 400) << "a largest element, a difference, an exponential, a sum, a division";
  EXPECT_LT(softmax, 4 * exp);
}

TEST(Arithmetic, WhatOnlyMovesElementsComputesNothing) {
  Attributes order;
  order.set("permutation", std::vector<std::int64_t>{1, 0});
  EXPECT_EQ(counted("transpose", {array_of({4, 8})}, order), 0);
}

TEST(Arithmetic, EveryFormulaOfTheCatalogueCanBeCounted) {
  for (const Card* known : all_cards()) {
    const Card& card = *known;
    if (card.pointwise == nullptr) continue;
    for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::f64, Dtype::i32, Dtype::u8, Dtype::boolean}) {
      if (!card.T.contains(dtype)) continue;
      const ValueTypes inputs(card.pointwise->arity, ValueType{dtype, {}});
      const Attributes attributes;
      EXPECT_GE(ArithmeticCounter().operations({card, inputs, attributes}, {ValueType{dtype, {}}}), 0)
          << card.name;
    }
  }
}

}  // namespace
