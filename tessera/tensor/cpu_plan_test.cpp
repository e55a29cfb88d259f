// What a plan on the CPU gives is what its ops give one by one.
#include <gtest/gtest.h>

#include <cmath>

#include "tessera/engine/devices.h"
#include "tessera/tensor/create.h"
#include "tessera/tensor/ops.h"
#include "tessera/tensor/region.h"
#include "tessera/tensor/scope.h"

using namespace tessera;
using engine::Tier;

namespace {

std::shared_ptr<Engine> planned_at_once() {
  return Engine::create(
      {.plans = {.threshold = 1, .wait = true}, .device = value_or_throw(engine::find_device("cpu"))});
}

std::shared_ptr<Engine> reference() {
  return Engine::create({.device = value_or_throw(engine::find_device("reference"))});
}

/// Numbers between -1 and 1, of 16 bits.
Tensor halves(const std::shared_ptr<Engine>& engine, Dtype dtype, const Shape& shape, int seed) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  std::vector<float> numbers;
  for (std::int64_t i = 0; i < count; ++i)
    numbers.push_back(static_cast<float>((i * 7919 + seed * 104'729) % 1999 - 999) / 1000);
  return cast(from_vector(numbers, shape, {.engine = engine}), {.dtype = dtype}).eval();
}

/// What it takes to evaluate a tensor now.
std::uint64_t kernels_of(const std::shared_ptr<Engine>& engine, const Tensor& tensor) {
  const std::uint64_t before = engine->report().number;
  (void)tensor.eval();
  std::uint64_t out = 0;
  if (engine->report().number != before)
    for (const auto& component : engine->report().components) out += component.kernels;
  return out;
}

constexpr std::int64_t beyond_doubles = (std::int64_t{1} << 53) + 1;

}  // namespace

TEST(CpuPlan, IntegersKeepAllTheirBits) {
  for (const Dtype dtype : {Dtype::i64, Dtype::u64}) {
    const auto engine = planned_at_once();
    const Tensor zeros_of = cast(zeros({5}, {.engine = engine}), {.dtype = dtype}).eval();
    for (int i = 0; i < 5; ++i) {
      const Tensor sum = zeros_of + (beyond_doubles + i);
      EXPECT_EQ(cast(sum, {.dtype = Dtype::i64}).to_vector<std::int64_t>(),
                std::vector<std::int64_t>(5, beyond_doubles + i))
          << i;
    }
    EXPECT_NE(engine->report().components.at(0).tier, Tier::streamed);
  }
}

TEST(CpuPlan, IntegersInLoopsKeepAllTheirBits) {
  const auto engine = planned_at_once();
  const Tensor start = zeros({3}, {.dtype = Dtype::i64, .engine = engine}).eval();
  for (int i = 0; i < 4; ++i) {
    const Tensor step = start + (beyond_doubles + i);
    const Tensor sum =
        for_loop(3, [&](const Tensor&, const Tensors& s) { return Tensors{s[0] + step}; }, {start})[0];
    EXPECT_EQ(sum.to_vector<std::int64_t>(), std::vector<std::int64_t>(3, 3 * (beyond_doubles + i))) << i;
  }
}

// Weights that stay are made wider and packed once; those that change must not be taken for the old ones.
TEST(CpuPlan, ProductsOf16BitsAreThoseOfTheReference) {
  const auto planned = planned_at_once(), plain = reference();
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16})
    for (const Shape& left : {Shape{8, 96}, Shape{3, 5, 96}, Shape{2, 1, 4, 96}}) {
      const auto product = [&](const std::shared_ptr<Engine>& engine, int weights) {
        const Tensor x = halves(engine, dtype, left, 1), w = halves(engine, dtype, {96, 40}, weights),
                     b = halves(engine, dtype, {40}, 3);
        Tensor y;
        for (int i = 0; i < 4; ++i) y = relu(matmul(x, w) + b).eval();
        return cast(y, {.dtype = Dtype::f32}).to_vector<float>();
      };
      for (const int weights : {5, 6, 5}) {
        const auto got = product(planned, weights), expected = product(plain, weights);
        ASSERT_EQ(got.size(), expected.size());
        for (std::size_t i = 0; i < got.size(); ++i)
          ASSERT_NEAR(got[i], expected[i], dtype == Dtype::f16 ? 0.02 : 0.13) << i;
      }
    }
}

/// Sums of f32, rounded once: as near to the reference as the last bit of 16.
TEST(CpuPlan, ConvolutionsOf16BitFloatsAreWhatTheReferenceHas) {
  const auto planned = planned_at_once(), plain = reference();
  struct Case {
    Shape x, w;
    ConvOptions how;
  };
  const Case cases[] = {{{1, 6, 40}, {8, 6, 5}, {.pads = {2, 2}}},
                        {{1, 16, 14, 14}, {16, 16, 3, 3}, {.pads = {1, 1, 1, 1}}},
                        {{5, 8, 9, 9}, {4, 4, 3, 2}, {.strides = {2, 1}, .groups = 2}},
                        {{1, 4, 6, 7, 7}, {4, 4, 3, 3, 3}, {.pads = {1, 1, 1, 1, 1, 1}}}};
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16})
    for (const Case& one : cases) {
      const auto run = [&](const std::shared_ptr<Engine>& engine, int weights) {
        const Tensor x = halves(engine, dtype, one.x, 1), w = halves(engine, dtype, one.w, weights),
                     b = halves(engine, dtype, {one.w[0]}, 3);
        Tensor y;
        for (int i = 0; i < 4; ++i) y = conv(x, w, b, one.how).eval();
        return cast(y, {.dtype = Dtype::f32}).to_vector<float>();
      };
      for (const int weights : {5, 6}) {
        const auto got = run(planned, weights), expected = run(plain, weights);
        ASSERT_EQ(got.size(), expected.size());
        const float bit = dtype == Dtype::f16 ? 1.0F / 1024 : 1.0F / 128;
        for (std::size_t i = 0; i < got.size(); ++i)
          ASSERT_NEAR(got[i], expected[i], bit * std::max(1.0F, std::abs(expected[i]))) << i;
      }
    }
}

TEST(CpuPlan, WeightsOf16BitsMayChange) {
  const auto planned = planned_at_once(), plain = reference();
  const auto run = [](const std::shared_ptr<Engine>& engine) {
    Tensor w = halves(engine, Dtype::f16, {64, 64}, 2);
    const Tensor x = halves(engine, Dtype::f16, {16, 64}, 1);
    std::vector<float> out;
    for (int i = 0; i < 6; ++i) {
      const Tensor y = matmul(x, w).eval();
      out.push_back(cast(y, {.dtype = Dtype::f32}).to_vector<float>()[5]);
      if (i % 2 == 1) w = (w * 0.5F).eval();
    }
    return out;
  };
  const auto got = run(planned), expected = run(plain);
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 0.02) << i;
}

TEST(CpuDevice, WhatItMayBeToldStandsBehindItsName) {
  const auto plain = value_or_throw(engine::find_device("cpu"));
  const auto both = value_or_throw(engine::find_device("cpu:precise:threads=3"));
  EXPECT_EQ(both->name(), "cpu:precise:threads=3");
  EXPECT_EQ(both, value_or_throw(engine::find_device("cpu:threads=3:precise"))) << "one device for all";
  EXPECT_NE(both, plain);
  EXPECT_EQ(both->found().substr(0, 10), "3 threads,");
  EXPECT_NE(both->found().find(", precise"), std::string::npos);
  EXPECT_EQ(value_or_throw(engine::find_device("cpu:threads=1"))->found().substr(0, 9), "1 thread,");
}

TEST(CpuDevice, WrongNamesAreRefused) {
  const auto message = [](std::string_view name) { return engine::find_device(name).error().message(); };
  EXPECT_EQ(message("cpu:fast"), "the CPU has no option 'fast', only precise and threads=N");
  EXPECT_EQ(message("cpu:"), "the CPU has no option '', only precise and threads=N");
  EXPECT_EQ(message("cpu:threads=0"), "'0' is no number of threads, which is a whole number from 1 to 256");
  EXPECT_NE(message("cpus").find("there is no device 'cpus', only "), std::string::npos);
}

TEST(CpuPlan, ResultsThatNobodyAskedForStayLazy) {
  const auto engine = planned_at_once();
  const Tensor x = halves(engine, Dtype::f32, {2, 3, 8, 8}, 3);
  const MaxPoolOptions by{.kernel = {2, 2}, .strides = {2, 2}};
  const auto expected =
      max_pool(from_vector(x.to_vector<float>(), {2, 3, 8, 8}, {.engine = reference()}), by);
  for (int i = 0; i < 4; ++i) {
    const Tensor moved = relu(x + 2.0);  // all elements alike
    const auto pooled = max_pool(moved, by);
    (void)pooled.values.eval();
    EXPECT_NE(engine->report().components.at(0).tier, Tier::streamed);
    EXPECT_TRUE(moved.is_evaluated()) << "the indices would be computed from it";
    EXPECT_EQ(kernels_of(engine, pooled.indices), 1U) << "nobody had asked for them";
    EXPECT_EQ(pooled.indices.to_vector<std::int64_t>(), expected.indices.to_vector<std::int64_t>());
  }
}

TEST(CpuPlan, ResultsThatNobodyAskedForAreStoredWhereTheyCostMuch) {
  const auto engine = planned_at_once();
  const Tensor x = halves(engine, Dtype::f32, {4, 64}, 5);
  for (int i = 0; i < 3; ++i) {
    const auto largest = topk(x, {.k = 5});
    (void)largest.values.eval();
    EXPECT_EQ(kernels_of(engine, largest.indices), 0U);
  }
}

TEST(CpuPlan, ResultsThatAGradientNeedsAreStored) {
  const auto engine = planned_at_once();
  Tensor x = halves(engine, Dtype::f32, {1, 2, 6, 6}, 7);
  x.requires_grad();
  const auto pooled = max_pool(x, {.kernel = {2, 2}});
  (void)pooled.values.eval();
  EXPECT_EQ(kernels_of(engine, pooled.indices), 0U);
}
