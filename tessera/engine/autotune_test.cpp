#include "tessera/engine/autotune.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tessera/base/text.h"
#include "tessera/compile/package.h"
#include "tessera/compile/plan_program.h"
#include "tessera/engine/devices.h"
#include "tessera/engine/plan_runner.h"
#include "tessera/ir/parse.h"
#include "tessera/op/interpreter.h"

using namespace tessera;
using namespace tessera::engine;

namespace {

constexpr const char* network =
    "func f(x: f32[16, 24], w: f32[24, 32], b: f32[32]) { a: f32[16, 32] = matmul(x, w) "
    "c: f32[16, 32] = add(a, b) d: f32[16, 32] = relu(c) e: f32[16, 32] = mul(d, d) "
    "g: f32[16, 32] = exp(e) h: f32[16, 32] = sub(g, d) return h }";

class Autotune : public ::testing::Test {
 protected:
  ~Autotune() override { std::filesystem::remove_all(folder_); }

  Tuned tuned(const char* text, const char* device = "cpu") {
    return value_or_throw(autotune(value_or_throw(ir::parse_function(text)),
                                   *value_or_throw(find_device(device)), {}, runtime::CodeStore(folder_)));
  }

  const std::string folder_ =
      (std::filesystem::temp_directory_path() / cat("tessera-autotune-", getpid())).string();
};

bool joins(const plan::Plan& plan, std::string_view a, std::string_view b) {
  return std::any_of(plan.steps.begin(), plan.steps.end(), [&](const plan::Step& step) {
    if (step.function == nullptr) return false;
    const auto has = [&](std::string_view op) {
      return std::any_of(step.function->body.begin(), step.function->body.end(), [&](const auto& statement) {
        const auto* call = ir::as<ir::Call>(*statement->value);
        return call != nullptr && call->op == op;
      });
    };
    return has(a) && has(b);
  });
}

TEST_F(Autotune, NoTileReachesOverACut) {
  const auto function = value_or_throw(ir::parse_function(network));
  const pattern::Target& target = value_or_throw(find_device("cpu"))->target();
  const auto plan_with = [&](const std::vector<TileCut>& cuts) {
    return value_or_throw(compiler::plan_function(function, with_cuts(target, cuts))).plan;
  };
  EXPECT_TRUE(joins(*plan_with({}), "matmul", "add"));
  EXPECT_TRUE(joins(*plan_with({}), "mul", "exp"));
  const auto cut = plan_with({{{0}, {1, 2}}, {{3}, {4}}});
  EXPECT_FALSE(joins(*cut, "matmul", "add") || joins(*cut, "matmul", "relu") || joins(*cut, "mul", "exp"));
}

TEST_F(Autotune, MeasuresWhatIsCloseAndRemembersIt) {
  const Tuned first = tuned(network);
  EXPECT_EQ(first.tuning.why_not, "");
  EXPECT_FALSE(first.tuning.is_remembered);
  ASSERT_FALSE(first.tuning.trials.empty());
  for (const TuningTrial& trial : first.tuning.trials) {
    EXPECT_LE(trial.predicted_ns, 1.2 * first.tuning.predicted_ns);
    EXPECT_GT(trial.measured_ns, 0);
    EXPECT_EQ(trial.is_kept, trial.measured_ns < 0.97 * trial.best_ns);
  }
  const Tuned second = tuned(network);
  EXPECT_TRUE(second.tuning.is_remembered);
  EXPECT_EQ(to_text(second.tuning), to_text(first.tuning));
}

TEST_F(Autotune, MeasuresAKernelWithoutWhatIsAroundIt) {
  const Tuned of = tuned(
      "func f(x: f32[512, 512], w: f32[512, 512], y: f32[8, 8]) { a: f32[512, 512] = matmul(x, w) "
      "b: f32[8, 8] = tanh(y) c: f32[8, 8] = mul(b, y) d: f32[8, 8] = exp(c) e: f32[8, 8] = sub(d, y) "
      "return a, e }");
  std::size_t in_kernel = 0;
  for (const TuningTrial& trial : of.tuning.trials) {
    ASSERT_GE(trial.cut.before[0], 1U) << "a product alone cannot be cut";
    EXPECT_LT(trial.best_ns, of.tuning.predicted_ns / 4) << "the product is not measured";
    ++in_kernel;
  }
  EXPECT_EQ(in_kernel, 3U) << "between each two of the four ops";
}

TEST_F(Autotune, MeasuresAnOpInTheProductAndInTheKernelBehindIt) {
  const Tuned of = tuned(
      "func f(x: f32[64, 256], w: f32[256, 256], y: f32[64, 256]) { a: f32[64, 256] = matmul(x, w) "
      "b: f32[64, 256] = gelu(a) c: f32[64, 256] = mul(b, y) return c }");
  const auto function = of.function;
  const pattern::Target& target = value_or_throw(find_device("cpu"))->target();
  const bool in_product =
      joins(*value_or_throw(compiler::plan_function(function, target)).plan, "matmul", "gelu");
  EXPECT_TRUE(std::any_of(of.tuning.trials.begin(), of.tuning.trials.end(), [&](const TuningTrial& trial) {
    const auto plan = value_or_throw(compiler::plan_function(function, with_cuts(target, {trial.cut}))).plan;
    return joins(*plan, "matmul", "gelu") != in_product;
  }));
}

TEST_F(Autotune, PlansGiveTheReferencesResults) {
  const Tuned of = tuned(network);
  auto planned = value_or_throw(compiler::plan_program(of.function, of.target));
  const auto cpu = value_or_throw(find_device("cpu"));
  auto runner = value_or_throw(
      PlanRunner::create(compiler::package(*of.function, {std::move(planned.program)}, "cpu"), *cpu));
  std::vector<op::HostTensor> inputs;
  for (const op::Extents& shape : {op::Extents{16, 24}, op::Extents{24, 32}, op::Extents{32}}) {
    inputs.push_back(value_or_throw(op::HostTensor::allocate(op::Dtype::f32, shape)));
    float next = -0.3F;
    for (float& value : inputs.back().values<float>()) value = next = next > 0.3F ? -0.3F : next + 0.037F;
  }
  const auto got = value_or_throw(runner.run(inputs, {}));
  const auto expected = value_or_throw(op::interpret(*value_or_throw(ir::parse_function(network)), inputs));
  for (std::size_t i = 0; i < 16 * 32; ++i)
    EXPECT_NEAR(got[0].values<float>()[i], expected[0].values<float>()[i], 1e-4);
}

TEST_F(Autotune, MeasuresAgainWhatCannotBeRead) {
  (void)tuned(network);
  for (const auto& entry : std::filesystem::directory_iterator(folder_))
    std::filesystem::resize_file(entry.path(), entry.file_size() / 2);
  EXPECT_FALSE(tuned(network).tuning.is_remembered);
  EXPECT_TRUE(tuned(network).tuning.is_remembered);
}

TEST_F(Autotune, SaysWhatIsNotMeasured) {
  EXPECT_NE(tuned(network, "reference").tuning.why_not, "");
  const Tuned loop = tuned(
      "func f(n: i64[], x: f32[4]) { y: f32[4] = for n (x) with () (i: i64[], c: f32[4]) { d: f32[4] = "
      "add(c, c) "
      "return d } return y }");
  EXPECT_NE(loop.tuning.why_not.find("region"), std::string::npos) << loop.tuning.why_not;
  EXPECT_TRUE(loop.tuning.trials.empty());
}

TEST_F(Autotune, TextsOfTuningsAreReadBackOrRefused) {
  Tuning tuning{.predicted_ns = 1200};
  tuning.trials.push_back({{{0, 1}, {2}}, 1300, 900, 1000, true});
  tuning.trials.push_back({{{0}, {1, 2}}, 1400, 1900, 900, false});
  const std::string text = to_text(tuning);
  const Tuning read = value_or_throw(parse_tuning(text, 3));
  EXPECT_EQ(to_text(read), text);
  EXPECT_EQ(read.trials[0].cut, tuning.trials[0].cut);
  EXPECT_FALSE(parse_tuning(text, 2)) << "there is no statement 2";
  for (const char* wrong : {"", "predicted", "predicted x\n", "predicted 1 2\n", "predicted inf\n",
                            "predicted 1\ncut 0|1 predicted 1 measured 1 best 1\n",
                            "predicted 1\ncut 0 predicted 1 measured 1 best 1 kept\n",
                            "predicted 1\ncut 0|x predicted 1 measured 1 best 1 kept\n",
                            "predicted 1\ncut |1 predicted 1 measured 1 best 1 kept\n",
                            "predicted 1\ncut 0|1 predicted 1 measured 1 best 1 kept more\n"})
    EXPECT_FALSE(parse_tuning(wrong, 3)) << wrong;
}

}  // namespace
