// A loop that is recorded again and again settles: from its hundredth evaluation on nothing is allocated. Nor
// by calls of plans from files, but for the handles that they give.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <tuple>

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

// One step of a real-time network: a state goes in and comes out, the weights are captured.
TEST(SteadyState, Trap_U15_a_compiled_step_allocates_nothing) {
  const auto engine = cpu_engine();
  const CreateOptions here{.engine = engine};
  Tensor wx = full({16, 48}, 0.01, here), wh = full({16, 48}, 0.02, here), b = zeros({48}, here);
  eval({wx, wh, b});
  struct Gru {
    Tensor hidden;
    double gain = 1;
    static constexpr auto fields() {
      return std::tuple{field("hidden", &Gru::hidden), field("gain", &Gru::gain)};
    }
  };
  const SliceOptions parts[] = {{.starts = {0}, .stops = {16}, .axes = {1}},
                                {.starts = {16}, .stops = {32}, .axes = {1}},
                                {.starts = {32}, .stops = {48}, .axes = {1}}};
  const auto step = compile([&](const Gru& state, const Tensor& x, const Tensor& rate) {
    const Tensor a = matmul(x, wx) + b, c = matmul(state.hidden, wh);
    const Tensor z = sigmoid(slice(a, parts[0]) + slice(c, parts[0])),
                 r = sigmoid(slice(a, parts[1]) + slice(c, parts[1])),
                 n = tanh(slice(a, parts[2]) + r * slice(c, parts[2]));
    return Gru{(1 - z) * n * rate + z * state.hidden * state.gain, state.gain};
  });
  const Tensor x = ones({1, 16}, here).eval();
  Gru state{zeros({1, 16}, here).eval()};
  const long count = settled_allocations([&](int i) {
    state.gain = 1.0 - 1e-6 * i;
    state = step(state, x, 1.0 + 1e-6 * i);
    state.hidden.eval();
  });
  EXPECT_EQ(count, 0);
  EXPECT_NE(engine->report().components[0].tier, engine::Tier::streamed);
}

TEST(SteadyState, Trap_U8_numbers_allocate_nothing_however_they_are_written) {
  const auto engine = cpu_engine();
  const Tensor x = ones({64, 48}, {.engine = engine}).eval(),
               k = full({64, 48}, 7, {.dtype = i32, .engine = engine}).eval(), mask = (k > 3).eval();
  const auto expect_none = [](const char* what, auto&& call) {
    EXPECT_EQ(settled_allocations([&](int) { (void)call(); }), 0) << what;
  };
  expect_none("x + 1.0f", [&] { return x + 1.0F; });
  expect_none("x + 1", [&] { return x + 1; });
  expect_none("1 - x", [&] { return 1 - x; });
  expect_none("x * 2u", [&] { return x * 2U; });
  expect_none("x / 2l", [&] { return x / 2L; });
  expect_none("x + size", [&] { return x + std::size_t{3}; });
  expect_none("x * true", [&] { return x * true; });
  expect_none("x > 0", [&] { return x > 0; });
  expect_none("k % 10", [&] { return k % 10; });
  expect_none("k == 7", [&] { return k == 7; });
  expect_none("-1 * k", [&] { return -1 * k; });
  expect_none("k & 3", [&] { return k & 3; });
  expect_none("maximum(x, 0)", [&] { return maximum(x, 0); });
  expect_none("pow(x, 2)", [&] { return pow(x, 2); });
  expect_none("where(mask, x, 0)", [&] { return where(mask, x, 0); });
  expect_none("clip(x, 0, 6)", [&] { return clip(x, 0, 6); });
  expect_none("clip(k, 0, 6)", [&] { return clip(k, 0, 6); });
  expect_none("clip(k, 0)", [&] { return clip(k, 0); });
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
