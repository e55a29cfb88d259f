// Slices that begin elsewhere each time, on the emulated device and on a GPU where there is one.
#include <gtest/gtest.h>

#include "tessera/engine/engine.h"
#include "tessera/runtime/cuda/emulator/test_devices.h"
#include "tessera/tensor/create.h"
#include "tessera/tensor/ops.h"
#include "tessera/tensor/region.h"

using namespace tessera;
using engine::Tier;

namespace {

class DeviceSlices : public runtime::cuda::OnTestDevice {
 protected:
  using Program = std::function<Tensor(const Tensor& x, std::int64_t p)>;

  static Tensor input(const std::shared_ptr<engine::Engine>& engine) {
    std::vector<float> values(40 * 6);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 23) - 11;
    return from_vector(values, {40, 6}, {.engine = engine}).eval();
  }

  /// Right values, one plan, and nothing made anew once its addresses were seen to differ.
  void expect_one_plan(const Program& program) {
    const auto planned = engine::Engine::create({.plans = {.wait = true}, .device = device_});
    const auto plain = engine::Engine::create({.plans = {.enabled = false}});
    const Tensor x = input(planned), same = input(plain);
    for (std::int64_t i = 0; i < 24; ++i) {
      const std::int64_t p = i * 7 % 30;
      EXPECT_EQ(program(x, p).to_vector<double>(), program(same, p).to_vector<double>()) << p;
      if (i < 5) continue;
      EXPECT_LT(planned->report().components.at(0).tier, Tier::recapture) << planned->explain();
    }
    EXPECT_EQ(planned->statistics().plans_made, 1U);
  }
};

}  // namespace

TEST_P(DeviceSlices, Trap_U2_OfStoredTensors) {
  expect_one_plan(
      [](const Tensor& x, std::int64_t p) { return x.slice({{.start = p, .stop = p + 8}}) * 2 + 1; });
  expect_one_plan([](const Tensor& x, std::int64_t p) {
    return x.slice({{.start = p, .stop = p + 4}, {.start = p % 3, .stop = p % 3 + 2}}).transpose() - 1;
  });
}

TEST_P(DeviceSlices, Trap_U2_OfResultsAndUpdates) {
  expect_one_plan([](const Tensor& x, std::int64_t p) {
    return relu(concat({x, x * 2}).slice({{.start = p, .stop = p + 9, .step = 3}, {.start = -2}}));
  });
  expect_one_plan([](const Tensor& x, std::int64_t p) {
    Tensor out = x;
    out.update_slice({p, 1}, x.slice({{.stop = 3}, {.stop = 4}}) * 10);
    return out;
  });
}

TEST_P(DeviceSlices, AtPositionsInALoop) {
  for (const auto& engine :
       {engine::Engine::create({.plans = {.threshold = 1, .wait = true}, .device = device_}),
        engine::Engine::create({.plans = {.enabled = false}, .device = device_})}) {
    const Tensor x = input(engine);
    const auto result = for_loop(12,
                                 [](const Tensor& i, const Tensors& s) {
                                   Tensor list = s[0];
                                   list.update_slice({i * 3}, slice_at(list, {i * 3 + 2}, {1}) + 100);
                                   return Tensors{list};
                                 },
                                 {x});
    const auto before = x.to_vector<double>(), after = result[0].to_vector<double>();
    for (std::size_t row = 0; row < 40; ++row)
      for (std::size_t k = 0; k < 6; ++k)
        EXPECT_EQ(after[row * 6 + k],
                  row % 3 == 0 && row < 36 ? before[(row + 2) * 6 + k] + 100 : before[row * 6 + k])
            << row;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceSlices, runtime::cuda::all_test_devices(),
                         runtime::cuda::test_device_name);
