// Constant weights of 8 bits, less a zero point: products read the bytes, nobody keeps them as wider
// integers.
#include <gtest/gtest.h>

#include <random>

#include "tessera/base/text.h"
#include "tessera/compile/constants.h"
#include "tessera/engine/devices.h"
#include "tessera/op/ir_builder.h"
#include "tests/differential/runs.h"

namespace tessera::differential {
namespace {

constexpr std::int64_t depth = 96, columns = 80;

op::HostTensor random_integers(op::Dtype dtype, const op::Extents& shape, int low, int high, unsigned seed) {
  std::mt19937 source(seed);
  std::uniform_int_distribution<int> from(low, high);
  op::HostTensor out = value_or_throw(op::HostTensor::allocate(dtype, shape));
  const auto fill = [&](auto values) {
    for (auto& value : values) value = static_cast<std::remove_reference_t<decltype(value)>>(from(source));
  };
  if (dtype == op::Dtype::i8) fill(out.values<std::int8_t>());
  if (dtype == op::Dtype::u8) fill(out.values<std::uint8_t>());
  if (dtype == op::Dtype::i32) fill(out.values<std::int32_t>());
  return out;
}

struct NarrowCase {
  op::Dtype dtype;
  std::optional<int> zero;
  const char* step;
};

/// x times the weights less their zero point, `times` over.
Program narrow_program(const NarrowCase& given, int times) {
  op::IrBuilder b;
  const bool is_signed = given.dtype == op::Dtype::i8;
  const auto weights =
      random_integers(given.dtype, {depth, columns}, is_signed ? -128 : 0, is_signed ? 127 : 255, 5);
  const op::Value x = b.parameter("x", {op::Dtype::i32, {7, depth}});
  const op::Value w = b.import(compiler::dense_constant(weights), {given.dtype, {depth, columns}});
  op::Values results;
  for (int i = 0; i < times; ++i) {
    op::Value wide = op::cast(w, op::Dtype::i32);
    if (given.zero) wide = wide - b.constant(*given.zero, op::Dtype::i32);
    results.push_back(op::matmul(i == 0 ? x : -x, wide));
  }
  return {.function = value_or_throw(b.function("f", results)),
          .inputs = {random_integers(op::Dtype::i32, {7, depth}, -100, 100, 6)}};
}

compiler::PlanOptions as_models_are_planned() {
  compiler::PlanOptions out;
  out.pipeline.passes.fold_bytes = std::int64_t{1} << 26;
  return out;
}

std::size_t constant_bytes(const plan::Plan& plan) {
  std::size_t out = 0;
  for (const op::HostTensor& constant : plan.constants) out += constant.byte_size();
  return out;
}

class NarrowWeights : public testing::TestWithParam<NarrowCase> {};

TEST_P(NarrowWeights, are_multiplied_as_they_are) {
  const Program program = narrow_program(GetParam(), 1);
  const auto cpu = value_or_throw(engine::find_device("cpu"));
  const auto planned =
      value_or_throw(compiler::plan_function(program.function, cpu->target(), as_models_are_planned()));
  ASSERT_EQ(planned.plan->steps.size(), 1U) << to_text(*planned.plan);
  EXPECT_EQ(planned.plan->steps[0].name(), GetParam().step);
  EXPECT_EQ(constant_bytes(*planned.plan), static_cast<std::size_t>(depth * columns));
  const auto expected = value_or_throw(run_reference(*program.function, program, {}));
  const auto got = value_or_throw(run_planned(program, as_models_are_planned(), *cpu, cpu->target(), {}));
  EXPECT_EQ(difference(expected, got), std::nullopt);
}

/// What two products read is made wider once, not in every launch.
TEST_P(NarrowWeights, of_two_products_are_folded) {
  const Program program = narrow_program(GetParam(), 2);
  const auto cpu = value_or_throw(engine::find_device("cpu"));
  const auto planned =
      value_or_throw(compiler::plan_function(program.function, cpu->target(), as_models_are_planned()));
  for (const plan::Step& step : planned.plan->steps)
    EXPECT_EQ(step.name().find("cast"), std::string::npos) << to_text(*planned.plan);
  EXPECT_EQ(
      difference(value_or_throw(run_reference(*program.function, program, {})),
                 value_or_throw(run_planned(program, as_models_are_planned(), *cpu, cpu->target(), {}))),
      std::nullopt);
}

// The last one does not fit into bytes any more.
INSTANTIATE_TEST_SUITE_P(Cpu, NarrowWeights,
                         testing::Values(NarrowCase{op::Dtype::i8, {}, "matmul+cast"},
                                         NarrowCase{op::Dtype::u8, {}, "matmul+cast"},
                                         NarrowCase{op::Dtype::i8, -3, "matmul+sub+cast"},
                                         NarrowCase{op::Dtype::u8, 128, "matmul+sub+cast"},
                                         NarrowCase{op::Dtype::u8, -1000, "matmul+sub+cast"}));

}  // namespace
}  // namespace tessera::differential
