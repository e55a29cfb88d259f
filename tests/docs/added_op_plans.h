// Plans of programs around the op of docs/adding-an-op.md, which nobody but its card has heard of.
#pragma once

#include <gtest/gtest.h>

#include "tessera/base/text.h"
#include "tessera/compile/package.h"
#include "tessera/compile/plan_function.h"
#include "tessera/engine/plan_runner.h"
#include "tessera/op/interpreter.h"
#include "tests/support/op_call.h"

namespace tessera::fixture {

/// The ops of each step, one step a line.
inline std::string steps_of(const plan::Plan& plan) {
  std::string out;
  for (const plan::Step& step : plan.steps) {
    std::vector<std::string> ops;
    if (step.function != nullptr)
      for (const auto& statement : step.function->body)
        ops.emplace_back(static_cast<const ir::Call&>(*statement->value).op);
    else if (step.card != nullptr)
      ops.emplace_back(step.card->name);
    out += join(ops, " ") + "\n";
  }
  return out;
}

/// The steps of a plan for the device, which computes what the reference does.
inline std::string steps_on(runtime::Device& device, op::IrBuilder& builder, op::Value result,
                            const std::vector<op::HostTensor>& inputs) {
  const op::Value results[] = {result};
  const ir::FunctionRef function = value_or_throw(builder.function("main", results));
  const auto planned = value_or_throw(compiler::plan_function(function, device.target()));
  std::string steps = steps_of(*planned.plan);
  const auto package = compiler::package(*function, {plan::program_of(planned.plan)}, "any");
  auto runner = value_or_throw(engine::PlanRunner::create(package, device));
  const auto got = value_or_throw(runner.run(inputs, {}));
  const auto expected = value_or_throw(op::interpret(*function, inputs));
  EXPECT_LT(largest_difference(got[0], expected[0]), 1e-5) << steps;
  return steps;
}

/// Between element-wise ops and in front of a reduction.
inline std::string steps_among_neighbours(runtime::Device& device) {
  op::IrBuilder b;
  const op::ValueType matrix{ir::Dtype::f32, {64, 96}};
  const op::Value x = b.parameter("x", matrix), y = b.parameter("y", matrix);
  const op::Value sum = op::sum(op::unary("exp", op::unary("log_sigmoid", x * y)), {1}, true);
  return steps_on(
      device, b, sum,
      {counting({64, 96}, -3, 1e-3, ir::Dtype::f32), counting({64, 96}, 2, -1e-3, ir::Dtype::f32)});
}

/// log_sigmoid(x w + bias) + y
inline std::string steps_behind_a_product(runtime::Device& device) {
  op::IrBuilder b;
  const op::Value x = b.parameter("x", {ir::Dtype::f32, {64, 48}}),
                  w = b.parameter("w", {ir::Dtype::f32, {48, 96}}),
                  bias = b.parameter("bias", {ir::Dtype::f32, {96}}),
                  y = b.parameter("y", {ir::Dtype::f32, {64, 96}});
  const op::Value result = op::unary("log_sigmoid", op::matmul(x, w) + bias) + y;
  return steps_on(
      device, b, result,
      {counting({64, 48}, -0.2, 1e-4, ir::Dtype::f32), counting({48, 96}, 0.3, -1e-4, ir::Dtype::f32),
       counting({96}, -1, 0.02, ir::Dtype::f32), counting({64, 96}, 2, -1e-3, ir::Dtype::f32)});
}

}  // namespace tessera::fixture
