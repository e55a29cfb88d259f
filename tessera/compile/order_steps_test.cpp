#include "tessera/compile/order_steps.h"

#include <gtest/gtest.h>

#include <random>

#include "tessera/op/catalogue.h"

using namespace tessera;
using plan::Plan;
using plan::StepId;
using plan::ValueId;
using plan::ValueKind;

namespace {

ValueId add_value(Plan& plan, ValueKind kind, std::uint32_t index, std::int64_t size) {
  plan.values.push_back({.kind = kind, .type = {op::Dtype::f32, {size}}, .index = index});
  return static_cast<ValueId>(plan.values.size() - 1);
}

ValueId add_step(Plan& plan, std::vector<ValueId> inputs, std::int64_t size) {
  const auto s = static_cast<std::uint32_t>(plan.steps.size());
  const ValueId result = add_value(plan, ValueKind::computed, s, size);
  plan.steps.push_back({.card = op::find_card("add"), .inputs = std::move(inputs), .results = {result}});
  return result;
}

/// Every step stands behind those it waits for, and knows its results.
void expect_valid(const Plan& plan) {
  for (StepId s = 0; s < plan.steps.size(); ++s) {
    for (const ValueId input : plan.steps[s].inputs)
      EXPECT_TRUE(plan.values[input].kind != ValueKind::computed || plan.values[input].index < s);
    for (const ValueId result : plan.steps[s].results) EXPECT_EQ(plan.values[result].index, s);
  }
}

}  // namespace

// All large values first and then their sums would hold all of them at once.
TEST(OrderSteps, BranchesAreFinishedBeforeOthersBegin) {
  Plan plan;
  plan.inputs = {add_value(plan, ValueKind::input, 0, 16)};
  std::vector<ValueId> large, small;
  for (int i = 0; i < 8; ++i) large.push_back(add_step(plan, {plan.inputs[0]}, 1000));
  for (const ValueId value : large) small.push_back(add_step(plan, {value}, 16));
  plan.outputs = {add_step(plan, small, 16)};
  EXPECT_TRUE(compiler::order_steps(plan));
  expect_valid(plan);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(plan.values[large[i]].index + 1, plan.values[small[i]].index);
  EXPECT_FALSE(compiler::order_steps(plan)) << "the second time there is nothing to do";
}

TEST(OrderSteps, RandomPlansStayInAnOrderInWhichTheyCanRun) {
  std::size_t changed = 0;
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    Plan plan;
    plan.inputs = {add_value(plan, ValueKind::input, 0, 16)};
    std::vector<ValueId> known = plan.inputs;
    for (std::uint32_t i = 0; i < 3 + random() % 40; ++i)
      known.push_back(add_step(plan, {known[random() % known.size()], known[random() % known.size()]},
                               static_cast<std::int64_t>(1 + random() % 5000)));
    plan.outputs = {known.back()};
    const std::size_t count = plan.steps.size();
    changed += compiler::order_steps(plan) ? 1 : 0;
    EXPECT_EQ(plan.steps.size(), count);
    expect_valid(plan);
    EXPECT_EQ(compiler::order_steps(plan), 0U) << "not idempotent";
  }
  EXPECT_GT(changed, 20U);
}
