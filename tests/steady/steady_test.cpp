// A loop that is recorded again and again settles: from its hundredth evaluation on nothing is allocated. Nor
// by calls of plans from files, but for the handles that they give.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "tessera/base/text.h"
#include "tessera/engine/devices.h"
#include "tessera/tensor/compiled.h"
#include "tessera/tensor/create.h"
#include "tessera/tensor/ops.h"
#include "tessera/tensor/saved_plan.h"
#include "tessera/tensor/scope.h"
#include "tests/steady/allocations.h"

namespace tessera {
namespace {

using fixture::allocation_count;
using fixture::settled_allocations;

std::shared_ptr<Engine> cpu_engine() {
  return Engine::create({.plans = {.wait = true}, .device = value_or_throw(engine::find_device("cpu"))});
}

TEST(SteadyState, the_counter_counts) {
  const long before = allocation_count();
  delete new int(allocation_count() > 0 ? 1 : 2);
  void* volatile memory = malloc(100);
  free(memory);
  EXPECT_GT(allocation_count(), before);
}

TEST(SteadyState, a_network_recorded_anew_allocates_nothing) {
  const auto engine = cpu_engine();
  const Tensor x = ones({64, 48}, {.engine = engine}), w = ones({48, 32}, {.engine = engine}),
               b = ones({32}, {.engine = engine}), v = ones({32, 10}, {.engine = engine});
  eval({x, w, b, v});
  const long count = settled_allocations([&](int i) {
    const Tensor h = relu(matmul(x * (1.0F / static_cast<float>(i + 1)), w) + b);
    const Tensor y = tanh(matmul(h, v)) * 0.5F;
    eval({y});
  });
  EXPECT_EQ(count, 0);
  EXPECT_EQ(engine->report().components.size(), 1U);
  EXPECT_NE(engine->report().components[0].tier, engine::Tier::streamed);
}

TEST(SteadyState, weights_that_change_allocate_nothing) {
  const auto engine = cpu_engine();
  const Tensor x = ones({16, 24}, {.engine = engine}), y = ones({24, 16}, {.engine = engine});
  Tensor w = ones({24, 24}, {.engine = engine});
  eval({x, y, w});
  const long count = settled_allocations([&](int i) {
    w = w - matmul(matmul(y, x), w) * (1e-6F * static_cast<float>(i));
    eval({w});
  });
  EXPECT_EQ(count, 0);
}

// Options are the program's own: those with lists are made before the loop.
TEST(SteadyState, calls_with_attributes_allocate_nothing) {
  const auto engine = cpu_engine();
  const Tensor x = ones({64, 48}, {.engine = engine}).eval();
  const SumOptions over_rows{.axes = {1}};
  const auto scaled = [&](int i) { return x * (1.0F / static_cast<float>(i + 1)); };
  EXPECT_EQ(settled_allocations([&](int i) { softmax(scaled(i), {.axis = -1}).eval(); }), 0) << "softmax";
  EXPECT_EQ(settled_allocations([&](int i) { sum(scaled(i), over_rows).eval(); }), 0) << "sum";
  EXPECT_EQ(settled_allocations([&](int i) { (transpose(x) * (1.0F / static_cast<float>(i + 1))).eval(); }),
            0)
      << "transpose";
  EXPECT_EQ(settled_allocations([&](int i) { layer_norm(scaled(i)).eval(); }), 0) << "layer_norm";
  EXPECT_EQ(settled_allocations([&](int i) { log_softmax(tanh(scaled(i))).eval(); }), 0) << "log_softmax";
}

/// Allocations of a thousand calls; each returns one vector of handles, from one vector of values.
constexpr long per_thousand_calls = 2000;

TEST(SteadyState, a_plan_from_a_file_allocates_its_handles_alone) {
  const auto engine = cpu_engine();
  const Tensor w = ones({48, 32}, {.engine = engine}).eval(), x = ones({64, 48}, {.engine = engine}).eval();
  const std::string path = testing::TempDir() + cat("steady_", getpid(), ".plan");
  save_plan(path, compile([&](const Tensor& a) { return tanh(relu(matmul(a, w)) * 0.5F); }), x);
  const SavedPlan plan = load_plan(path, {.engine = engine});
  std::filesystem::remove(path);
  EXPECT_LE(settled_allocations([&](int) { (void)plan({x}); }), per_thousand_calls);
}

}  // namespace
}  // namespace tessera
