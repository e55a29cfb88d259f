#include "tessera/compile/cut_sizes.h"

#include <gtest/gtest.h>

#include "tessera/compile/plan_program.h"
#include "tessera/ir/parse.h"
#include "tessera/ir/print.h"
#include "tessera/op/validate.h"

using namespace tessera;
using compiler::CutFunction;
using plan::Source;

namespace {

ir::FunctionRef function_of(const std::string& text) { return value_or_throw(ir::parse_function(text)); }

CutFunction cut(const ir::FunctionRef& function) {
  auto out = compiler::cut_at_learned_sizes(function);
  EXPECT_TRUE(out) << out.error().to_text();
  for (const compiler::CutPart& part : out->parts) {
    EXPECT_TRUE(op::validate(*part.function).empty()) << ir::print(*part.function);
    EXPECT_EQ(part.inputs.size(), part.function->params.size());
    EXPECT_EQ(part.function->dims.size(), function->dims.size() + part.learned.size());
  }
  return *std::move(out);
}

}  // namespace

TEST(CutSizes, AFunctionWithoutLearnedSizesStaysTheSameObject) {
  const auto function = function_of(
      "func f[N](x: f32[N]) {\n"
      "  places: i64[N, 1], count: i64[] = nonzero(x)\n"
      "  return places, count\n"
      "}\n");
  const CutFunction out = cut(function);
  ASSERT_EQ(out.parts.size(), 1U);
  EXPECT_EQ(out.parts[0].function, function);
}

TEST(CutSizes, IntegersThatAreNoSizesCutNothing) {
  const CutFunction out =
      cut(function_of("func f[N](x: f32[N]) {\n"
                      "  places: i64[N, 1], k: i64 = nonzero(x)\n"
                      "  more: i64 = add(k, 1)\n"
                      "  return places, more\n"
                      "}\n"));
  EXPECT_EQ(out.parts.size(), 1U);
}

TEST(CutSizes, WhatNeedsTheSizeComesAfterTheCut) {
  const CutFunction out =
      cut(function_of("func f[N](x: f32[N], w: f32[4]) {\n"
                      "  places: i64[N, 1], k: i64 = nonzero(x)\n"
                      "  kept: i64[k, 1] = slice(places) {starts = shape[0], stops = shape[k]}\n"
                      "  other: f32[4] = exp(w)\n"
                      "  twice: i64[k, 1] = add(kept, kept)\n"
                      "  return twice, other, x\n"
                      "}\n"));
  ASSERT_EQ(out.parts.size(), 2U);
  EXPECT_EQ(out.parts[0].function->body.size(), 2U);  // nonzero and exp
  EXPECT_EQ(out.parts[1].function->body.size(), 2U);
  ASSERT_EQ(out.parts[1].learned.size(), 1U);
  EXPECT_EQ(out.parts[1].learned[0].from.part, 0U);
  EXPECT_EQ(out.outputs[0].part, 1U);
  EXPECT_EQ(out.outputs[1].part, 0U);
  EXPECT_EQ(out.outputs[2], (Source{.part = Source::caller, .index = 0}));
}

TEST(CutSizes, SizesOfSizesCutAgain) {
  const CutFunction out =
      cut(function_of("func f[N](x: f32[N]) {\n"
                      "  a: i64[N, 1], k: i64 = nonzero(x)\n"
                      "  y: f32[k] = slice(x) {starts = shape[0], stops = shape[k]}\n"
                      "  b: i64[k, 1], m: i64 = nonzero(y)\n"
                      "  z: f32[m] = slice(y) {starts = shape[0], stops = shape[m]}\n"
                      "  return z, m, k\n"
                      "}\n"));
  EXPECT_EQ(out.parts.size(), 3U);
}

TEST(CutSizes, AnInputMayBeASize) {
  const CutFunction out =
      cut(function_of("func f(n: i64, x: f32[8]) {\n"
                      "  y: f32[n] = slice(x) {starts = shape[0], stops = shape[n]}\n"
                      "  return y\n"
                      "}\n"));
  ASSERT_EQ(out.parts.size(), 1U);
  ASSERT_EQ(out.parts[0].learned.size(), 1U);
  EXPECT_EQ(out.parts[0].learned[0].from, (Source{.part = Source::caller, .index = 0}));
}

TEST(CutSizes, AWrongFunctionIsAnError) {
  const auto node = ir::parse("func f(n: i64, x: f32[8]) {\n  y: f32[7] = exp(x)\n  return y\n}\n");
  ASSERT_TRUE(node);
  EXPECT_FALSE(compiler::plan_program(ir::FunctionRef(ir::as<ir::Function>(*node)), {}))
      << "found before it is cut";
}
