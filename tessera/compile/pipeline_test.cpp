#include "tessera/compile/pipeline.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tessera/base/text.h"
#include "tessera/compile/constants.h"
#include "tessera/compile/simplify_casts.h"
#include "tessera/ir/parse.h"
#include "tessera/ir/print.h"
#include "tessera/op/interpreter.h"
#include "tessera/op/ir_builder.h"
#include "tessera/op/validate.h"
#include "tests/support/growth.h"
#include "tests/support/slot_bits.h"

using namespace tessera;
using namespace tessera::compiler;

namespace {

ir::FunctionRef parsed(std::string_view text) { return value_or_throw(ir::parse_function(text)); }

ir::FunctionRef compiled(std::string_view text, const PipelineOptions& options = {.verify = true}) {
  return value_or_throw(run_passes(parsed(text), options)).function;
}

constexpr std::string_view twice =
    "func f(x: f32[2]) { a: f32[2] = exp(x) b: f32[2] = exp(x) c: f32[2] = add(a, b) return c }";

TEST(Pipeline, DisablesAndReports) {
  const auto outcome = value_or_throw(run_passes(parsed(twice), {.disabled = {"merge_equal"}}));
  EXPECT_EQ(outcome.function->body.size(), 3U);
  ASSERT_EQ(outcome.passes.size(), function_passes().size());
  for (const PassReport& report : outcome.passes) EXPECT_EQ(report.ran, report.name != "merge_equal");
  const auto merged = value_or_throw(run_passes(parsed(twice)));
  EXPECT_EQ(merged.function->body.size(), 2U);
  for (const PassReport& report : merged.passes) {
    EXPECT_EQ(report.changed, report.name == "merge_equal") << report.name;
    if (!report.changed) continue;
    EXPECT_EQ(report.statements_before, 3U);
    EXPECT_EQ(report.statements_after, 2U);
    ASSERT_EQ(report.notes.size(), 1U);
    EXPECT_EQ(report.notes[0].what, "exp is computed before");
    EXPECT_EQ(report.notes[0].at.resolve().to_text(), "<text>:1:40");
  }
}

TEST(Pipeline, UnchangedIsTheSameObject) {
  const auto function = parsed("func f(x: f32[2], w: f32[2]) { a: f32[2] = mul(x, w) return a }");
  EXPECT_EQ(value_or_throw(run_passes(function)).function, function);
}

/// Large constants of bytes are folded by a table, whatever they become and wherever they go on the way.
TEST(Pipeline, WhatIsMadeOfBytesIsFoldedElementByElement) {
  for (const ir::Dtype dtype : {ir::Dtype::u8, ir::Dtype::i8}) {
    const op::HostTensor bytes = value_or_throw(op::HostTensor::allocate(dtype, {37, 41}));
    for (std::int64_t i = 0; i < bytes.size(); ++i)
      bytes.array().data[i] = static_cast<std::byte>((i * 7919 + i / 5) % 256);
    op::IrBuilder b;
    const op::Value weights = b.import(dense_constant(bytes), {dtype, {37, 41}});
    const op::Value wide = b.call("cast", {weights}, {{"dtype", ir::Dtype::i32}});
    const op::Value centred = b.call("sub", {wide, b.constant(131, ir::Dtype::i32)});
    const op::Value scaled = b.call(
        "mul", {b.call("cast", {centred}, {{"dtype", ir::Dtype::f64}}), b.constant(0.37, ir::Dtype::f64)});
    const op::Value half = b.call("cast", {b.call("neg", {weights})}, {{"dtype", ir::Dtype::f16}});
    const float scale = 0.37F;
    const auto element = [&](const op::Extents& shape) {
      return b.import(dense_constant(op::HostTensor::of<float>(ir::Dtype::f32, shape, {&scale, 1})),
                      {ir::Dtype::f32, ir::shape_of(shape)});
    };
    const op::Value floats = b.call("cast", {centred}, {{"dtype", ir::Dtype::f32}});
    const op::Value moved = b.call("add", {b.call("mul", {floats, element({1})}), element({1, 1})});
    const op::Value higher = b.call("mul", {floats, element({1, 1, 1})});
    const op::Value joined = b.call("add", {wide, centred});  // of two tables
    const op::Value turned = op::transpose(scaled, std::vector<std::int64_t>{1, 0});
    const op::Value flat = op::reshape(b.call("add", {turned, b.constant(3, ir::Dtype::f64)}), {37 * 41});
    const op::Value sums = b.call("sum", {turned}, {{"axes", std::vector<std::int64_t>{0}}});
    const auto function = value_or_throw(
        b.function("main", std::vector{scaled, half, joined, centred, flat, sums, moved, higher}));
    PipelineOptions options{.verify = true};
    options.passes.fold_weights();
    const auto folded = value_or_throw(run_passes(function, options)).function;
    EXPECT_TRUE(folded->body.empty()) << ir::print(*folded).substr(0, 500);
    const auto expected = value_or_throw(op::interpret(*function, {}));
    const auto got = value_or_throw(op::interpret(*folded, {}));
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(got[i].byte_size(), expected[i].byte_size());
      EXPECT_EQ(std::memcmp(got[i].array().data, expected[i].array().data, got[i].byte_size()), 0) << i;
    }
  }
}

TEST(Pipeline, UnknownPassesAreErrors) {
  const auto outcome = run_passes(parsed(twice), {.disabled = {"merge\x1b[equal"}});
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().message().find("there is no pass 'merge\\x1b[equal'; the passes are "), 0u);
}

TEST(Pipeline, SaysAllThatIsWrongFirst) {
  const auto outcome =
      run_passes(parsed("func f(x: f32[2]) {\n  a: f32[3] = exp(x)\n  b: f32[2] = nothing(x)\n"
                        "  c: i64[] = sum(x) {axis = 1}\n  return a\n}"));
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().to_text(),
            "<text>:2:3: exp: its result is f32[2], but 'a' is f32[3]\n"
            "  <text>:3:3: there is no op 'nothing'\n"
            "  <text>:4:3: sum: has no attribute 'axis'");
}

TEST(Pipeline, CallsBackAfterEachPass) {
  std::vector<std::string> names;
  PipelineOptions options;
  options.disabled = {"decompose"};
  options.after = [&](const Pass& pass, const Stage& stage) {
    names.emplace_back(pass.name);
    EXPECT_GE(stage.function->body.size(), 2U);
  };
  ASSERT_TRUE(run_passes(parsed(twice), options));
  EXPECT_EQ(names.size(), function_passes().size() - 1);
}

TEST(Pipeline, Trap_S17_ParametersAreNoConstants) {
  const auto function = compiled(
      "func f(x: f32[2]) { a: f32[2] = mul(x, $0:f32) b: f32[2] = mul(x, $1:f32) c: f32[2] = add(a, b) "
      "return c }");
  EXPECT_EQ(function->body.size(), 3U) << ir::print(*function);
  const std::vector<float> x{1, 2};
  const std::vector<op::HostTensor> inputs{op::HostTensor::of<float>(ir::Dtype::f32, {2}, x)};
  for (const std::vector<double>& slots : {std::vector{0.5, 0.75}, {0.25, 0.25}, {1.0, 0.0}}) {
    const auto bits = fixture::slot_bits(*function, slots);
    const auto result = value_or_throw(op::interpret(*function, inputs, {.parameters = bits}));
    EXPECT_EQ(result[0].values<float>()[1], 2 * (slots[0] + slots[1]));
  }
}

TEST(Pipeline, Trap_S21_EveryBitOfAConstantSurvives) {
  const auto function = compiled(
      "func f(x: f32[1]) { a: f32[1] = mul(x, 16777215.0) b: f32[1] = add(a, 3.14159274) return b }");
  EXPECT_NE(ir::print(*function).find("16777215.0"), std::string::npos);
  EXPECT_NE(ir::print(*function).find("3.1415927"), std::string::npos);
}

TEST(Pipeline, LongChainsAreLinear) {
  constexpr int steps = 99'999;
  op::IrBuilder b;
  op::Value x = b.parameter("x", {ir::Dtype::f32, {2}});
  for (int i = 0; i < steps; ++i) x = op::unary(i % 3 == 0 ? "exp" : "neg", x);
  const auto function = value_or_throw(b.function("f", std::vector{x}));
  const auto outcome = value_or_throw(run_passes(function));
  EXPECT_EQ(outcome.function->body.size(), steps / 3);  // the two negations between cancel
}

TEST(Pipeline, ManyConstantsAreNotComparedWithEachOther) {
  const auto run_with = [](std::size_t constants) {
    op::IrBuilder b;
    const op::ValueType type{ir::Dtype::f32, {2}};
    const op::Value x = b.parameter("x", type);
    op::Value sum = x;
    for (std::size_t i = 0; i < constants; ++i) {
      std::vector<std::byte> bytes(8);
      bytes[0] = static_cast<std::byte>(i % 256);
      bytes[1] = static_cast<std::byte>(i / 256);
      const auto dense = ir::dense(ir::tensor_type(type.dtype, type.shape), Bytes::own(std::move(bytes)));
      sum = sum + b.call("maximum", {x, b.import(dense, type)});
    }
    const auto outcome = value_or_throw(run_passes(value_or_throw(b.function("f", std::vector{sum}))));
    EXPECT_EQ(outcome.function->body.size(), 2 * constants);
  };
  EXPECT_LT(fixture::growth(2'000U, 16'000U, run_with), 24) << "comparing all pairs would be 64";
}

TEST(Pipeline, OpsThatAreNotKnownStay) {
  // Not in the catalogue: it may do anything, so it is neither merged nor dropped.
  const auto function = parsed("func f(x: f32[2]) { a: f32[2] = my_op(x) b: f32[2] = my_op(x) return x }");
  for (const Pass& pass : function_passes()) {
    PassOptions options;
    PassContext context(options);
    EXPECT_EQ(value_or_throw(std::get<PassFunction>(pass.run)(function, context)), function) << pass.name;
  }
}

TEST(Pipeline, DiamondsOfCheapValuesDoNotExplode) {
  op::IrBuilder b;
  op::Value x = b.parameter("x", {ir::Dtype::f32, {2}});
  for (int i = 0; i < 60; ++i) x = op::unary("neg", x) + op::unary("abs", x);
  const auto outcome = value_or_throw(run_passes(value_or_throw(b.function("f", std::vector{x}))));
  EXPECT_LE(outcome.function->body.size(), 60U * 8 * 3);
}

TEST(Casts, AreLosslessWhereEveryValueFits) {
  using ir::Dtype;
  const std::pair<Dtype, Dtype> yes[] = {{Dtype::f16, Dtype::f32}, {Dtype::bf16, Dtype::f64},
                                         {Dtype::i8, Dtype::i16},  {Dtype::u8, Dtype::i16},
                                         {Dtype::u32, Dtype::i64}, {Dtype::i16, Dtype::f32},
                                         {Dtype::u8, Dtype::bf16}, {Dtype::boolean, Dtype::u8},
                                         {Dtype::i8, Dtype::f16},  {Dtype::u32, Dtype::f64}};
  const std::pair<Dtype, Dtype> no[] = {
      {Dtype::f16, Dtype::bf16},   {Dtype::bf16, Dtype::f16}, {Dtype::f32, Dtype::f16},
      {Dtype::i8, Dtype::u64},     {Dtype::u64, Dtype::i64},  {Dtype::i32, Dtype::f32},
      {Dtype::i64, Dtype::f64},    {Dtype::u16, Dtype::f16},  {Dtype::i16, Dtype::bf16},
      {Dtype::u8, Dtype::boolean}, {Dtype::f32, Dtype::i64}};
  for (const auto& [from, to] : yes)
    EXPECT_TRUE(is_lossless(from, to)) << to_string(from) << " " << to_string(to);
  for (const auto& [from, to] : no)
    EXPECT_FALSE(is_lossless(from, to)) << to_string(from) << " " << to_string(to);
}

}  // namespace
