// Results that take the memory of an input: where they may, and that nobody reads what was overwritten.
#include "tessera/plan/in_place.h"

#include <gtest/gtest.h>

#include "tessera/compile/plan_function.h"
#include "tessera/ir/parse.h"
#include "tessera/plan/binding.h"
#include "tessera/plan/known_sizes.h"

using namespace tessera;

namespace {

plan::PlanRef plan_of(const std::string& text) {
  const auto function = ir::parse_function(text);
  EXPECT_TRUE(function) << function.error().to_text();
  const auto planned =
      compiler::plan_function(*function, {.name = "test", .sources = {compiler::fused_regions()}});
  EXPECT_TRUE(planned) << planned.error().to_text();
  return planned->plan;
}

plan::Binding bound(const plan::Plan& plan, std::int64_t size = 3) {
  const std::vector<std::int64_t> sizes(plan.dims.size(), size);
  std::vector<op::Layout> layouts;
  for (const plan::ValueId input : plan.inputs) {
    op::Extents shape;
    for (const op::Dim& dim : plan.values[input].type.shape)
      shape.push_back(value_or_throw(plan::KnownSizes{plan.dims, sizes}.of(dim)));
    layouts.push_back(op::contiguous(shape));
  }
  return value_or_throw(plan::bind(plan, sizes, layouts));
}

std::size_t pairs_in(const plan::Plan& plan) {
  std::size_t out = 0;
  for (const plan::Step& step : plan.steps) out += step.in_place.size();
  return out;
}

/// matmul, something, matmul: products are no kernels, what stands between them is.
std::string between_products(const std::string& statements, const std::string& result) {
  return "func f(x: f32[8, 8], w: f32[8, 8]) {\n  a: f32[8, 8] = matmul(x, w)\n" + statements +
         "  z: f32[8, 8] = matmul(" + result + ", w)\n  return z\n}\n";
}

}  // namespace

TEST(InPlace, AnElementwiseKernelWritesOverWhatDies) {
  const auto plan = plan_of(between_products("  b: f32[8, 8] = exp(a)\n", "b"));
  EXPECT_EQ(pairs_in(*plan), 1U) << plan::to_text(*plan);
  const plan::Binding binding = bound(*plan);
  EXPECT_EQ(binding.temporaries.size(), 1U);
  EXPECT_EQ(binding.memory.bytes, 8 * 8 * 4U);
}

/// a, b and c of three products: c takes the place of a unless all products are under way at the same time.
TEST(StepSpans, WhatASpanUsesLivesAsLongAsIt) {
  const auto plan = plan_of(
      "func f(x: f32[8, 8], w: f32[8, 8]) { a: f32[8, 8] = matmul(x, w) b: f32[8, 8] = matmul(a, w) "
      "c: f32[8, 8] = matmul(b, w) d: f32[8, 8] = matmul(c, w) return d }");
  const std::vector<op::Layout> layouts(2, op::contiguous({8, 8}));
  const auto bytes_with = [&](std::vector<plan::StepSpan> spans) {
    plan::Binding binding = value_or_throw(plan::find_lives(*plan, {}, layouts));
    EXPECT_EQ(binding.places[plan->steps[0].results[0]].layout.shape, (op::Extents{8, 8}));
    plan::hold_over(spans, binding);
    plan::assign_buffers(*plan, binding);
    return binding.memory.bytes;
  };
  EXPECT_EQ(bytes_with({}), 2 * 256U);
  EXPECT_EQ(bytes_with({{1, 2}}), 3 * 256U);
  EXPECT_EQ(bytes_with({{0, 1}, {2, 3}}), 2 * 256U);
  EXPECT_EQ(bytes_with({{0, 3}}), 3 * 256U);
}

TEST(InPlace, ASoftmaxWritesOverItsInput) {
  const auto plan = plan_of(between_products("  b: f32[8, 8] = softmax(a) {axis = -1}\n", "b"));
  EXPECT_EQ(pairs_in(*plan), 1U) << plan::to_text(*plan);
}

TEST(InPlace, WhatIsReadAgainStays) {
  const auto plan = plan_of(
      "func f(x: f32[8, 8], w: f32[8, 8]) {\n"
      "  a: f32[8, 8] = matmul(x, w)\n"
      "  b: f32[8, 8] = exp(a)\n"
      "  c: f32[8, 8] = matmul(b, a)\n"
      "  return c\n"
      "}\n");
  EXPECT_EQ(pairs_in(*plan), 0U) << plan::to_text(*plan);
}

TEST(InPlace, InputsAndOutputsOfTheProgramStay) {
  EXPECT_EQ(pairs_in(*plan_of("func f(x: f32[8]) {\n  y: f32[8] = exp(x)\n  return y\n}\n")), 0U);
  const auto plan = plan_of(
      "func f(x: f32[8, 8], w: f32[8, 8]) {\n"
      "  a: f32[8, 8] = matmul(x, w)\n"
      "  b: f32[8, 8] = exp(a)\n"
      "  return a, b\n"
      "}\n");
  EXPECT_EQ(pairs_in(*plan), 0U) << plan::to_text(*plan);
}

TEST(InPlace, WhatIsReadElsewhereThanWrittenStays) {
  // The transpose is read inside of the kernel, at another place than the one that is written.
  const auto plan = plan_of(between_products(
      "  t: f32[8, 8] = transpose(a)\n  b: f32[8, 8] = add(a, t)\n  c: f32[8, 8] = exp(b)\n", "c"));
  for (const plan::Step& step : plan->steps)
    for (const plan::InPlace& pair : step.in_place)
      EXPECT_NE(plan->steps[plan->values[step.inputs[pair.input]].index].name(), "matmul")
          << plan::to_text(*plan);
}

TEST(InPlace, AnotherSizeOrDtypeStays) {
  const auto plan = plan_of(
      "func f(x: f32[8, 8], w: f32[8, 8]) {\n"
      "  a: f32[8, 8] = matmul(x, w)\n"
      "  b: f64[8, 8] = cast(a) {dtype = f64}\n"
      "  c: f64[8, 8] = matmul(b, b)\n"
      "  return c\n"
      "}\n");
  EXPECT_EQ(pairs_in(*plan), 0U) << plan::to_text(*plan);
}

// Values that live at the same time have memory of their own, whatever was put in place of what.
TEST(InPlace, ChainsShareOnePlaceAndNothingElse) {
  std::string text;
  std::string last = "a";
  for (int i = 0; i < 6; ++i) {
    const std::string p = "p" + std::to_string(i), e = "e" + std::to_string(i);
    text += "  " + e + ": f32[8, 8] = exp(" + last + ")\n  " + p + ": f32[8, 8] = matmul(" + e + ", w)\n";
    last = p;
  }
  const auto plan = plan_of(between_products(text, last));
  EXPECT_EQ(pairs_in(*plan), 6U) << plan::to_text(*plan);
  const plan::Binding binding = bound(*plan);
  for (std::size_t a = 0; a < binding.ranges.size(); ++a)
    for (std::size_t b = 0; b < a; ++b) {
      const bool together = binding.ranges[a].first <= binding.ranges[b].last() &&
                            binding.ranges[b].first <= binding.ranges[a].last();
      if (together) {
        EXPECT_NE(binding.memory.offsets[a], binding.memory.offsets[b]);
      }
    }
  EXPECT_EQ(binding.memory.bytes, binding.memory.lower_bound);
}
