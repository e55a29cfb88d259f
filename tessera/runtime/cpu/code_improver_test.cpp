#include "tessera/runtime/cpu/code_improver.h"

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "tessera/base/text.h"
#include "tessera/kernel/kernel_case.h"
#include "tests/support/repeats.h"

using namespace tessera;
using namespace tessera::kernel;
using namespace tessera::runtime::cpu;

namespace {

using Kernels = std::vector<std::shared_ptr<CompiledKernel>>;

/// Kernels whose code was made fast.
Kernels fast_kernels() {
  Kernels out;
  for (const char* op : {"softmax", "layer_norm", "gelu", "log_softmax", "tanh"}) {
    const auto function =
        parsed(cat("func f(x: f32[20, 70]) {\n  y: f32[20, 70] = ", op, "(x)\n  return y\n}"));
    out.push_back(std::make_shared<CompiledKernel>(value_or_throw(build(*function)),
                                                   KernelOptions{.quality = CodeQuality::fast}));
    const auto inputs = random_inputs(*function, 2);
    const auto results = empty_like(inputs);
    CompiledJob job;
    value_or_throw(out.back()->prepare(arrays_of(inputs), arrays_of(results), job));
  }
  return out;
}

void ask_for_all(const Kernels& kernels, CodeImprover& improver) {
  for (const auto& kernel : kernels) improver.ask_for(kernel);
}

/// With kernels and an improver that are never destroyed, as those of devices.
[[noreturn]] void end_while_improving(std::chrono::microseconds after) {
  static const auto& kernels = *new Kernels(fast_kernels());
  static auto& improver = *new CodeImprover;
  ask_for_all(kernels, improver);
  std::this_thread::sleep_for(after);
  std::exit(0);
}

/// Each in a process of its own, in which nothing was compiled before.
TEST(CodeImprover, TheProgramMayEndWhileCodeIsInTheMaking) {
  if (const auto llvm = Llvm::open(); !llvm) GTEST_SKIP() << llvm.error().to_text();
  if (!value_or_throw(Llvm::open())->outlives_program()) GTEST_SKIP() << "code is good at once";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (int moment = 0; moment < 20; moment += fixture::is_sanitized ? 5 : 1) {
    const std::chrono::microseconds after(moment * 600);
    EXPECT_EXIT(end_while_improving(after), ::testing::ExitedWithCode(0), "")
        << "after " << after.count() << " us";
  }
}

/// The thread that was compiling is not there in the child, and nobody waits for it. Not under the address
/// sanitizer, whose search for leaks at the child's end may wait for a lock that the thread held.
TEST(CodeImprover, AForkedProcessEndsWhileItsParentMakesCode) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer's locks are not made for a fork of threads";
#endif
  if (const auto llvm = Llvm::open(); !llvm) GTEST_SKIP() << llvm.error().to_text();
  const Kernels kernels = fast_kernels();
  CodeImprover improver;
  ask_for_all(kernels, improver);
  for (int k = 0; k < 5; ++k) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(600);  // a signal ends it if it waits
      std::exit(0);
    }
    int status = 1;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

TEST(CodeImprover, CountsWhatItHasMade) {
  if (const auto llvm = Llvm::open(); !llvm) GTEST_SKIP() << llvm.error().to_text();
  if (!value_or_throw(Llvm::open())->outlives_program()) GTEST_SKIP() << "code is good at once";
  const Kernels kernels = fast_kernels();
  CodeImprover improver;
  ask_for_all(kernels, improver);
  improver.wait();
  EXPECT_EQ(improver.improvements(), 5U);
}

}  // namespace
