#include <gtest/gtest.h>

#include <algorithm>

#include "tessera/base/json.h"
#include "tessera/engine/devices.h"
#include "tessera/tensor/compiled.h"
#include "tessera/tensor/create.h"
#include "tessera/tensor/ops.h"
#include "tessera/tensor/scope.h"

using namespace tessera;

namespace {

std::shared_ptr<Engine> make_engine(const std::string& device, bool plans) {
  EngineOptions options{.device = *engine::find_device(device)};
  options.plans = {.enabled = plans, .threshold = 0, .wait = true};
  return Engine::create(std::move(options));
}

/// Two blocks, one in the other; gives the line of the product.
std::uint32_t evaluate_blocks(const std::shared_ptr<Engine>& engine) {
  const Tensor x = ones({8, 8}, {.engine = engine});
  eval(x);
  const Block outer("encoder", engine);
  const Tensor y = matmul(x, x);
  const std::uint32_t line = __LINE__ - 1;
  Tensor z;
  {
    const Block inner("head", engine);
    z = relu(exp(y) - 1.0);
  }
  eval(z);
  return line;
}

const engine::KernelTime* kernel_with(const Profile& profile, std::string_view op) {
  for (const auto& kernel : profile.kernels)
    if (std::any_of(kernel.ops.begin(), kernel.ops.end(), [&](const auto& o) { return o.name == op; }))
      return &kernel;
  return nullptr;
}

const engine::BlockTime* block_of(const Profile& profile, std::string_view name) {
  for (const auto& block : profile.blocks)
    if (block.block == name) return &block;
  return nullptr;
}

struct Way {
  const char* name;
  const char* device;
  bool plans;
};

class Profiling : public testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    if (const auto found = engine::find_device(GetParam().device); !found)
      GTEST_SKIP() << found.error().to_text();
  }
};

TEST_P(Profiling, KernelsHaveTheirOpsLinesAndBlocks) {
  const auto engine = make_engine(GetParam().device, GetParam().plans);
  engine->set_profiling(ProfilingLevel::per_kernel);
  const std::uint32_t line = evaluate_blocks(engine);
  const Profile profile = engine->profile();
  EXPECT_EQ(profile.evaluations, 2U);
  const auto* product = kernel_with(profile, "matmul");
  ASSERT_NE(product, nullptr) << profile.to_text();
  EXPECT_EQ(product->runs, 1U);
  EXPECT_EQ(product->ops[0].line, line);
  EXPECT_NE(product->ops[0].file.find("profile_test.cpp"), std::string::npos);
  EXPECT_EQ(product->block, "encoder");
  const auto* exponential = kernel_with(profile, "exp");
  ASSERT_NE(exponential, nullptr);
  EXPECT_EQ(exponential->block, "encoder/head");
  EXPECT_GT(exponential->time.count(), 0);
  ASSERT_NE(block_of(profile, "encoder"), nullptr);
  EXPECT_EQ(block_of(profile, "encoder")->time, block_of(profile, "encoder/head")->time + product->time);
  EXPECT_LE(block_of(profile, "encoder")->time, profile.time);
}

TEST_P(Profiling, EventsLieInTheirEvaluations) {
  const auto engine = make_engine(GetParam().device, GetParam().plans);
  engine->set_profiling(ProfilingLevel::per_kernel);
  evaluate_blocks(engine);
  const Profile profile = engine->profile();
  const engine::ProfileEvent* evaluation = nullptr;
  std::size_t kernels = 0;
  for (const auto& event : profile.events) {
    if (event.kernel == engine::ProfileEvent::none) {
      evaluation = &event;
      continue;
    }
    ++kernels;
    ASSERT_NE(evaluation, nullptr);
    EXPECT_GE(event.begin, evaluation->begin);
    EXPECT_LE(event.begin + event.time, evaluation->begin + evaluation->time);
  }
  EXPECT_GE(kernels, 2U);
  const std::string json = profile.to_json();
  EXPECT_TRUE(JsonDocument::parse("profile", json)) << json;
  EXPECT_NE(json.find("\"ph\":\"X\""), std::string::npos) << json;
  EXPECT_NE(json.find("profile_test.cpp:"), std::string::npos) << json;
}

TEST_P(Profiling, LevelsMeasureAsMuchAsTheySay) {
  const auto engine = make_engine(GetParam().device, GetParam().plans);
  evaluate_blocks(engine);
  EXPECT_EQ(engine->profile().evaluations, 0U);
  EXPECT_EQ(engine->profile().to_text(), "profiling is off\n");
  engine->set_profiling(ProfilingLevel::summary);
  evaluate_blocks(engine);
  EXPECT_EQ(engine->profile().evaluations, 2U);
  EXPECT_GT(engine->profile().time.count(), 0);
  EXPECT_TRUE(engine->profile().blocks.empty());
  engine->set_profiling(ProfilingLevel::per_block);
  evaluate_blocks(engine);
  EXPECT_FALSE(engine->profile().blocks.empty());
  EXPECT_TRUE(engine->profile().events.empty());
  EXPECT_EQ(engine->profile().to_text().find("matmul"), std::string::npos);
  engine->set_profiling(ProfilingLevel::none);
  evaluate_blocks(engine);
  EXPECT_EQ(engine->profile().evaluations, 0U);
}

INSTANTIATE_TEST_SUITE_P(Ways, Profiling,
                         testing::Values(Way{"streamed", "reference", false},
                                         Way{"planned", "reference", true}, Way{"on_cpu", "cpu", true},
                                         Way{"on_cuda_streamed", "cuda:0", false},
                                         Way{"on_cuda", "cuda:0", true}),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(Profile, OfTheDefaultEngine) {
  set_profiling(ProfilingLevel::per_kernel);
  eval(exp(ones({4})) + 1.0);
  const Profile measured = profile();
  set_profiling(ProfilingLevel::none);
  EXPECT_EQ(measured.evaluations, 1U);
  EXPECT_NE(measured.to_text().find("exp"), std::string::npos) << measured.to_text();
}

}  // namespace
