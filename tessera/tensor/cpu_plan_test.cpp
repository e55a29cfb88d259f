// What a plan on the CPU gives is what its ops give one by one.
#include <gtest/gtest.h>

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
