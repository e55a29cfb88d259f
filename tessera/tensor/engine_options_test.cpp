// What options of an engine promise: the same bits with `deterministic`, tilings that were measured with
// `autotune`.
#include <gtest/gtest.h>

#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "tessera/base/text.h"
#include "tessera/engine/devices.h"
#include "tessera/tensor/create.h"
#include "tessera/tensor/gradient.h"
#include "tessera/tensor/ops.h"
#include "tessera/tensor/scope.h"

using namespace tessera;

namespace {

std::shared_ptr<Engine> deterministic_cpu() {
  return Engine::create({.deterministic = true, .device = value_or_throw(engine::find_device("cpu"))});
}

/// Numbers with many digits, so that another order of sums is another result.
Tensor waves(const std::shared_ptr<Engine>& engine, const Shape& shape, double seed) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<float>(std::sin(seed + 1.7 * static_cast<double>(i))));
  return from_vector(values, shape, {.engine = engine}).eval();
}

std::vector<float> step(const std::shared_ptr<Engine>& engine, std::int64_t batch) {
  const Tensor x = waves(engine, {batch, 120}, 1), w = waves(engine, {120, 50}, 2),
               b = waves(engine, {50}, 3);
  const Tensor y = softmax(gelu(matmul(x, w) + b)) * 3.3 - sum(x * x, {.axes = {1}, .keepdims = true});
  return (y + mean(y * y)).to_vector<float>();
}

}  // namespace

TEST(Deterministic, TheFirstEvaluationHasTheBitsOfLaterOnes) {
  const auto engine = deterministic_cpu();
  const auto first = step(engine, 64);
  EXPECT_EQ(engine->statistics().runs(engine::Tier::streamed), 0U);
  for (int i = 0; i < 40; ++i) ASSERT_EQ(step(engine, 64), first) << "evaluation " << i + 2;
  EXPECT_EQ(step(deterministic_cpu(), 64), first) << "another engine";
}

// Libraries get a copy in their own order when the same weights come again.
TEST(Deterministic, WeightsThatStayGiveTheBitsOfNewOnes) {
  for (const Shape& sizes : {Shape{64, 120, 50}, {1, 1000, 300}, {8, 768, 768}, {300, 400, 200}, {5, 7, 3}}) {
    const auto engine = deterministic_cpu();
    const Tensor x = waves(engine, {sizes[0], sizes[1]}, 1), w = waves(engine, {sizes[1], sizes[2]}, 2),
                 b = waves(engine, {sizes[2]}, 3);
    const auto product = [&] { return relu(matmul(x, w) + b).to_vector<float>(); };
    const auto first = product();
    for (int i = 0; i < 4; ++i) EXPECT_EQ(product(), first) << "sizes " << join(sizes, " x ");
  }
}

TEST(Deterministic, OtherSizesBeforeDoNotMatter) {
  const auto engine = deterministic_cpu();
  for (const std::int64_t batch : {64, 14, 64, 33, 14, 1, 2, 33, 64})
    EXPECT_EQ(step(engine, batch), step(deterministic_cpu(), batch)) << batch;
}

TEST(Deterministic, NeitherDoOtherThreads) {
  const auto expected = step(deterministic_cpu(), 48);
  for (int round = 0; round < 5; ++round) {
    const auto engine = deterministic_cpu();
    std::vector<std::vector<float>> got(6);
    std::vector<std::thread> threads;
    for (auto& result : got) threads.emplace_back([&] { result = step(engine, 48); });
    for (std::thread& thread : threads) thread.join();
    for (const auto& result : got) EXPECT_EQ(result, expected);
  }
}

TEST(Deterministic, TheDefaultEngineIsConfiguredBeforeItIsThere) {
  eval(zeros({2}));
  EXPECT_FALSE(Engine::configure_default({.deterministic = true}));
}

TEST(Autotune, PlansOfAnEngineAreMeasuredAndGiveTheSame) {
  const auto folder = std::filesystem::temp_directory_path() / cat("tessera-tunings-", getpid());
  const char* before = std::getenv("XDG_CACHE_HOME");
  const std::string old = before != nullptr ? before : "";
  setenv("XDG_CACHE_HOME", folder.c_str(), 1);
  const auto tuned = Engine::create({.plans = {.threshold = 1, .wait = true},
                                     .autotune = true,
                                     .device = value_or_throw(engine::find_device("cpu"))});
  const auto got = step(tuned, 64), expected = step(deterministic_cpu(), 64);
  before != nullptr ? setenv("XDG_CACHE_HOME", old.c_str(), 1) : unsetenv("XDG_CACHE_HOME");
  EXPECT_EQ(tuned->statistics().runs(engine::Tier::streamed), 0U);
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], 1e-4);
  EXPECT_FALSE(std::filesystem::is_empty(folder / "tessera/tunings"));
  std::filesystem::remove_all(folder);
}
