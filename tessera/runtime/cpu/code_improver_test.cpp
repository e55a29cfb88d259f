#include "tessera/runtime/cpu/code_improver.h"

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "tessera/base/text.h"
#include "tessera/kernel/kernel_case.h"

using namespace tessera;
using namespace tessera::kernel;
using namespace tessera::runtime::cpu;

namespace {

/// Kernels that are made fast and wait for better code; all live as long as the program.
void ask_for_better_code(CodeImprover& improver) {
  const auto& kernels = *new std::vector<std::shared_ptr<CompiledKernel>>([] {
    std::vector<std::shared_ptr<CompiledKernel>> out;
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
  }());
  for (const auto& kernel : kernels) improver.ask_for(kernel);
}

/// Each in a process of its own, in which nothing was compiled before.
TEST(CodeImprover, TheProgramMayEndWhileCodeIsInTheMaking) {
  if (const auto llvm = Llvm::open(); !llvm) GTEST_SKIP() << llvm.error().to_text();
  if (!value_or_throw(Llvm::open())->outlives_program()) GTEST_SKIP() << "code is good at once";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (int moment = 0; moment < 20; ++moment)
    EXPECT_EXIT(
        {
          ask_for_better_code(*new CodeImprover);
          std::this_thread::sleep_for(std::chrono::microseconds(moment * 600));
          std::exit(0);
        },
        ::testing::ExitedWithCode(0), "")
        << "after " << moment * 600 << " us";
}

/// The thread that was compiling is not there in the child, and nobody waits for it.
TEST(CodeImprover, AForkedProcessEndsWhileItsParentMakesCode) {
  if (const auto llvm = Llvm::open(); !llvm) GTEST_SKIP() << llvm.error().to_text();
  CodeImprover improver;
  ask_for_better_code(improver);
  for (int k = 0; k < 5; ++k) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);  // a signal ends it if it waits
      std::exit(0);
    }
    int status = 1;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  improver.wait();
}

TEST(CodeImprover, CountsWhatItHasMade) {
  if (const auto llvm = Llvm::open(); !llvm) GTEST_SKIP() << llvm.error().to_text();
  if (!value_or_throw(Llvm::open())->outlives_program()) GTEST_SKIP() << "code is good at once";
  CodeImprover improver;
  ask_for_better_code(improver);
  improver.wait();
  EXPECT_EQ(improver.improvements(), 5U);
}

}  // namespace
