// What an unchanged launch of a compiled function asks of the driver, seen by a driver that counts; what
// plans on a device count as their memory.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>

#include "tessera/engine/engine.h"
#include "tessera/runtime/cuda/cuda_device.h"
#include "tessera/runtime/cuda/emulator/test_devices.h"
#include "tessera/tessera.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

std::map<std::string, int>& calls() {
  static std::map<std::string, int> counts;
  return counts;
}
bool is_counting = false;

template <class Tag, class F>
struct Counted;
template <class Tag, class R, class... A>
struct Counted<Tag, R (*)(A...)> {
  static inline R (*real)(A...) = nullptr;
  static inline const char* name = nullptr;

  static R call(A... arguments) {
    if (is_counting) ++calls()[name];
    return real(arguments...);
  }
};

template <class Tag, class F>
void count_calls(F& function, const char* name) {
  using Function = Counted<Tag, F>;
  Function::real = function;
  Function::name = name;
  function = &Function::call;
}

const Driver& counting_driver() {
  static const Driver driver = [] {
    Driver out = emulated_driver();
#define TESSERA_COUNT(name) count_calls<struct Tag_##name>(out.name, #name);
    TESSERA_CUDA_FUNCTIONS(TESSERA_COUNT)
#undef TESSERA_COUNT
    return out;
  }();
  return driver;
}

TEST(PlansOfProducts, CountWhatTheLibraryNeedsAsTheirMemory) {
  auto device = open_test_device(TestDevice::emulated);
  if (!device) GTEST_SKIP() << device.error().to_text();
  const auto evictions = [&](std::int64_t workspace) {
    emulated_blas_state().workspace_bytes = workspace;
    const auto engine = Engine::create(
        {.plans = {.max_bytes = 3 << 19, .wait = true, .joins_sizes = false}, .device = *device});
    const auto product = compile([](const Tensor& a) { return matmul(a, a); });
    for (const std::int64_t n : {20, 30, 40}) product(ones({n, n}, {.engine = engine})).eval();
    return engine->statistics().evictions;
  };
  EXPECT_EQ(evictions(4096), 0u);
  EXPECT_GT(evictions(1 << 20), 0u);
  emulated_blas_state() = {};
}

TEST(UnchangedLaunch, IsOneCallOfTheDriver) {
  if (const std::string why = Emulator::why_unavailable(); !why.empty()) GTEST_SKIP() << why;
  static const runtime::CodeStore nowhere("");
  auto device = value_or_throw(CudaDevice::create(counting_driver(), 0, emulated_compiler(),
                                                  {.store = &nowhere}, &open_emulated_blas));
  const auto engine = Engine::create({.plans = {.wait = true}, .device = std::move(device)});
  const CreateOptions here{.engine = engine};
  const Tensor x = from_vector<float>({1, 2, 3}, {3}, here), y = from_vector<float>({4, 5, 6}, {3}, here);
  const auto both = compile([](const Tensor& a, const Tensor& b) { return a * b + a; });
  for (int i = 0; i < 20; ++i) both(x, y).eval();
  is_counting = true;
  Tensor out = both(x, y);
  out.eval();
  is_counting = false;
  EXPECT_EQ(calls(), (std::map<std::string, int>{{"cuCtxGetCurrent", 1}, {"cuGraphLaunch", 1}}));
  EXPECT_EQ(out.to_vector<float>(), (std::vector<float>{5, 12, 21}));
}

}  // namespace
