// What a plan on the CPU gives is what its ops give one by one.
#include <gtest/gtest.h>

#include "tessera/engine/devices.h"
#include "tessera/tensor/create.h"
#include "tessera/tensor/ops.h"
#include "tessera/tensor/region.h"

using namespace tessera;
using engine::Tier;

namespace {

std::shared_ptr<Engine> planned_at_once() {
  return Engine::create(
      {.plans = {.threshold = 1, .wait = true}, .device = value_or_throw(engine::find_device("cpu"))});
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
