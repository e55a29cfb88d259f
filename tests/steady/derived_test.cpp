// What is derived from a weight is found again: memory stays as it is, whatever the calls that read it.
#include <gtest/gtest.h>

#include <cstdio>

#include "tessera/engine/devices.h"
#include "tessera/tensor/create.h"
#include "tessera/tensor/ops.h"
#include "tessera/tensor/scope.h"
#include "tests/support/resident.h"

namespace tessera {
namespace {

using fixture::MiB;
using fixture::resident_bytes;

std::shared_ptr<Engine> limited_engine(std::int64_t limit) {
  return Engine::create({.memory_limit = static_cast<std::uint64_t>(limit),
                         .plans = {.wait = true},
                         .device = value_or_throw(engine::find_device("cpu"))});
}

/// Batches 8 8 32 32 8 8 … through `evaluate(batch)`; what is derived and what is resident stay as they are
/// after the first fifth. The mean of what is resident, so that a thread's stack or a table does not decide.
template <class F>
void expect_flat(Engine& engine, int evaluations, const F& evaluate) {
  const auto batch = [](int i) { return std::int64_t{i / 2 % 2 == 0 ? 8 : 32}; };
  const int warm_up = evaluations / 5;
  for (int i = 0; i < warm_up; ++i) evaluate(batch(i));
  const std::uint64_t derived = engine.memory().derived;
  const std::int64_t resident = resident_bytes();
  EXPECT_GT(derived, 0U) << "nothing is remembered";
  for (int i = warm_up; i < evaluations; ++i) evaluate(batch(i));
  const MemoryFigures after = engine.memory();
  EXPECT_EQ(after.derived, derived);
  EXPECT_LE(after.used + after.derived, after.limit);
  const std::int64_t growth = resident_bytes() - resident;
  std::printf("derived %.1f MiB, resident %.1f MiB, grown by %.2f MiB\n", static_cast<double>(derived) / MiB,
              static_cast<double>(resident) / MiB, static_cast<double>(growth) / MiB);
  // One copy of the weight in all evaluations is less than this; what is made in each is far more.
  EXPECT_LT(growth, 8 * MiB);
}

}  // namespace

TEST(Derived, Trap_U1_AWeightThatBatchesTakeTurnsWith) {
  const auto engine = limited_engine(64 * MiB);
  const Tensor w = ones({1024, 1024}, {.engine = engine}).eval();
  const Tensor x8 = ones({8, 1024}, {.engine = engine}).eval(),
               x32 = ones({32, 1024}, {.engine = engine}).eval();
  expect_flat(*engine, 10'000, [&](std::int64_t batch) {
    const Tensor y = matmul(batch == 8 ? x8 : x32, w).eval();
    ASSERT_EQ(y.data<float>()[0], 1024.0F);
  });
}

TEST(Derived, Trap_U1_FormsOfOneWeightAreBounded) {
  const auto engine = limited_engine(256 * MiB);
  const Tensor w = ones({1024, 1024}, {.engine = engine}).eval();
  std::int64_t rows = 0;
  for (int i = 0; i < 600; ++i) {
    rows = rows % 200 + 1;
    for (int twice = 0; twice < 2; ++twice) matmul(ones({rows, 1024}, {.engine = engine}), w).eval();
    ASSERT_LE(engine->memory().derived, std::uint64_t{16} * MiB) << rows;
  }
}

TEST(Derived, Trap_U1_FiltersOfAConvolution) {
  const auto engine = limited_engine(64 * MiB);
  const Tensor w = (ones({64, 64, 3, 3}, {.engine = engine}) * 0.5F).eval();
  const Tensor x8 = ones({1, 64, 8, 8}, {.engine = engine}).eval(),
               x32 = ones({4, 64, 8, 8}, {.engine = engine}).eval();
  expect_flat(*engine, 1'000, [&](std::int64_t batch) {
    conv(batch == 8 ? x8 : x32, w, {}, {.pads = {1, 1, 1, 1}}).eval();
  });
}

TEST(Derived, Trap_U1_Halves) {
  const auto engine = limited_engine(64 * MiB);
  const CreateOptions here{.dtype = Dtype::f16, .engine = engine};
  const Tensor w = ones({512, 512}, here).eval();
  const Tensor x8 = ones({8, 512}, here).eval(), x32 = ones({32, 512}, here).eval();
  expect_flat(*engine, 500, [&](std::int64_t batch) { matmul(batch == 8 ? x8 : x32, w).eval(); });
}

TEST(Derived, Trap_U1_GoesWithTheWeightAndItsContents) {
  const auto engine = limited_engine(64 * MiB);
  const Tensor x = ones({8, 512}, {.engine = engine}).eval();
  Tensor w = ones({512, 512}, {.engine = engine}).eval();
  for (int i = 0; i < 200; ++i) {
    const float expected = 512.0F * static_cast<float>(i + 1);
    for (int j = 0; j < 3; ++j) ASSERT_EQ(matmul(x, w).item<float>({0, 0}), expected);
    w = (w + 1.0F).eval();
    ASSERT_LE(engine->memory().derived, std::uint64_t{8} * MiB);
  }
  w = Tensor();
}

TEST(Derived, Trap_U1_GivesWayToTheLimit) {
  const auto engine = limited_engine(24 * MiB);
  const Tensor x = ones({8, 1024}, {.engine = engine}).eval();
  std::vector<Tensor> weights;
  for (int i = 0; i < 3; ++i) weights.push_back(ones({1024, 1024}, {.engine = engine}).eval());
  for (int i = 0; i < 20; ++i) matmul(x, weights[static_cast<std::size_t>(i / 4 % 3)]).eval();
  EXPECT_GT(engine->memory().derived, 0U);
  const Tensor large = ones({9, 256, 1024}, {.engine = engine}).eval();  // 9 MiB; 12 are the weights'
  for (const Tensor& w : weights) ASSERT_EQ(matmul(x, w).item<float>({0, 0}), 1024.0F);
  const MemoryFigures figures = engine->memory();
  EXPECT_LE(figures.used + figures.derived, figures.limit);
}

}  // namespace tessera
