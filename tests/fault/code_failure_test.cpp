// A machine that lets nobody make code: kernels are interpreted, results are right, and one is told.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>

#include "tessera/compile/tiling.h"
#include "tessera/engine/devices.h"
#include "tessera/engine/engine.h"
#include "tessera/runtime/cpu/cpu_device.h"
#include "tessera/runtime/cpu/llvm.h"
#include "tessera/tensor/create.h"
#include "tessera/tensor/ops.h"
#include "tessera/tensor/tensor.h"

namespace ts = tessera;

namespace {

std::atomic<bool> forbids_code = false;
std::atomic<int> refused = 0;

}  // namespace

/// As a system refuses it that allows no memory to be written first and run then.
extern "C" int mprotect(void* memory, std::size_t bytes, int protection) noexcept {
  using Function = int (*)(void*, std::size_t, int);
  static const auto real = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "mprotect"));
  if (!forbids_code || (protection & PROT_EXEC) == 0) return real(memory, bytes, protection);
  ++refused;
  errno = EACCES;
  return -1;
}

namespace {

std::shared_ptr<ts::runtime::Device> new_cpu() {
  static const ts::runtime::CodeStore nowhere("/dev/null/kernels");
  ts::runtime::cpu::CpuOptions options{.threads = 2};
  options.kernels.store = &nowhere;
  options.target.sources = {ts::compiler::fused_regions()};
  return std::make_shared<ts::runtime::cpu::CpuDevice>(std::move(options));
}

std::shared_ptr<ts::engine::Engine> planned_on(const std::shared_ptr<ts::runtime::Device>& device) {
  return ts::engine::Engine::create({.plans = {.threshold = 1, .wait = true}, .device = device});
}

/// Fused kernels with and without rows, of so many numbers; `times` evaluations.
std::vector<float> run(const std::shared_ptr<ts::engine::Engine>& engine, std::int64_t count, int times = 3) {
  const ts::Tensor x = ts::full({count, 8}, 0.25, {.engine = engine}).eval();
  std::vector<float> out;
  for (int i = 0; i < times; ++i) out = ts::softmax(ts::tanh(x * 0.5F + 1.0F) * x).to_vector<float>();
  return out;
}

void expect_near(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-6F);
}

std::vector<float> expected(std::int64_t count) {
  return run(planned_on(ts::value_or_throw(ts::engine::find_device("reference"))), count);
}

/// While it lives, no code can be made.
struct WithoutCode {
  WithoutCode() { refused = 0, forbids_code = true; }
  ~WithoutCode() { forbids_code = false; }
};

class CodeFailure : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto llvm = ts::runtime::cpu::Llvm::open(); !llvm) GTEST_SKIP() << llvm.error().to_text();
  }
};

TEST_F(CodeFailure, LeavesTheInterpreterAndSaysSo) {
  const auto device = new_cpu();
  const auto engine = planned_on(device);
  {
    const WithoutCode without;
    expect_near(run(engine, 100), expected(100));
    EXPECT_GT(refused, 0);
  }
  EXPECT_NE(engine->report().components.at(0).tier, ts::engine::Tier::streamed);
  ASSERT_FALSE(device->lacks().empty());
  EXPECT_NE(device->lacks()[0].find("kernels without code are interpreted: "), std::string::npos);
  EXPECT_NE(engine->explain().find(device->lacks()[0]), std::string::npos) << engine->explain();
}

// Hot plans get better code beside the program; where that fails they go on with what they have.
TEST_F(CodeFailure, LeavesWhatWasMadeBefore) {
  const auto device = new_cpu();
  const auto engine = planned_on(device);
  expect_near(run(engine, 100, 2), expected(100));
  const WithoutCode without;
  expect_near(run(engine, 100, 20), expected(100));
  device->settle();
  EXPECT_GT(refused, 0);
  expect_near(run(engine, 100, 20), expected(100));
  expect_near(run(engine, 70), expected(70));
}

// Run with a library in the way that is no LLVM but for its name (tests/CMakeLists.txt).
TEST(BrokenLlvm, IsPassedOverForAnOlderOne) {
  if (std::getenv("TESSERA_BROKEN_LLVM") == nullptr) GTEST_SKIP() << "no broken library is in the way";
  const auto llvm = ts::runtime::cpu::Llvm::open();
  if (!llvm) {
    EXPECT_NE(llvm.error().message().find("libLLVM.so.19.1, which cannot be used: the library lacks"),
              std::string::npos)
        << llvm.error().message();
    GTEST_SKIP() << llvm.error().message();
  }
  EXPECT_FALSE((*llvm)->version().starts_with("19.1"));
}

TEST_F(CodeFailure, OfTheCompilerIsAnError) {
  const auto* llvm = ts::value_or_throw(ts::runtime::cpu::Llvm::open());
  const auto made =
      llvm->compile("define void @kernel() { no such instruction }", ts::runtime::cpu::CodeQuality::fast);
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().message().find("LLVM does not read the kernel"), std::string::npos);
}

}  // namespace
