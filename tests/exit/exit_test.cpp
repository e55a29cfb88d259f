// A program may end at any moment, whatever its threads do, and fork.
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>
#include <string>

#include "tessera/base/shared_library.h"
#include "tests/support/repeats.h"

extern char** environ;

namespace {

/// TESSERA_EXIT_RUNS may ask for more.
int run_count() {
  const char* asked = std::getenv("TESSERA_EXIT_RUNS");
  return asked == nullptr ? 100 : std::atoi(asked);
}

std::string outcome(const std::string& way, int microseconds, const std::string& folder) {
  std::string program = TESSERA_EXIT_PROGRAM, how = way, when = std::to_string(microseconds), where = folder;
  std::array<char*, 5> arguments{program.data(), how.data(), when.data(), where.data(), nullptr};
  pid_t child = 0;
  if (posix_spawn(&child, program.c_str(), nullptr, nullptr, arguments.data(), environ) != 0)
    return "not started";
  int status = 0;
  if (waitpid(child, &status, 0) != child) return "lost";
  if (WIFSIGNALED(status)) return "signal " + std::to_string(WTERMSIG(status));
  return "status " + std::to_string(WEXITSTATUS(status));
}

class Exit : public ::testing::Test {
 protected:
  Exit() {
    std::string name = (std::filesystem::temp_directory_path() / "tessera-exit-XXXXXX").string();
    folder_ = mkdtemp(name.data());
    setenv("XDG_CACHE_HOME", folder_.c_str(), 1);
    setenv("TESSERA_THREADS", "2", 1);
  }
  ~Exit() override { std::filesystem::remove_all(folder_); }

  std::string folder_;
};

}  // namespace

#ifdef __x86_64__
TEST_F(Exit, WhatAForeignLibraryMakesIsNotDestroyed) {
  const std::filesystem::path path = TESSERA_LIBRARY_WITH_STATICS;
  setenv("TESSERA_LIBRARY_PATH", path.parent_path().c_str(), 1);
  const std::string file = path.filename().string();
  const char* const name = file.c_str();
  EXPECT_EXIT(
      {
        const auto library = tessera::SharedLibrary::open("a library", {&name, 1});
        const auto value =
            library ? reinterpret_cast<int (*)()>(library->symbol("value_of_static")) : nullptr;
        std::exit(value != nullptr && value() == 7 && library->outlives_program() ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}
#endif

// Moments are drawn at random: most in the first 60 ms, in which libraries are opened and first plans made.
// Every other run finds no code that was made before, and makes it.
TEST_F(Exit, Trap_U4_WhileThreadsEvaluateCompileAndLoad) {
  ASSERT_EQ(outcome("prepare", 0, folder_), "status 42");
  const char* const ways[] = {"exit", "return", "exit", "thread", "callback", "exit", "quick_exit", "_exit"};
  std::mt19937 random(7);
  std::map<std::string, int> outcomes;
  for (int run = 0; run < run_count(); ++run) {
    const std::string way = ways[static_cast<std::size_t>(run) % std::size(ways)];
    const int longest = run % 4 == 3 ? 400'000 : 60'000;
    const int moment = static_cast<int>(random() % static_cast<unsigned>(longest));
    if (run % 2 == 0) std::filesystem::remove_all(folder_ + "/tessera");
    const std::string how = outcome(way, moment, folder_);
    ++outcomes[how];
    EXPECT_EQ(how, "status 42") << "run " << run << ", by " << way << " after " << moment << " us";
  }
  for (const auto& [how, times] : outcomes)
    std::printf("%s: %d of %d runs\n", how.c_str(), times, run_count());
}

// Threads of the parent hold every lock of Tessera and of its libraries sooner or later. 100 and the number of a signal
// would be a child that hangs or crashes, 3 one that computed.
TEST_F(Exit, Trap_U22_AForkedChildEndsAndIsToldWhatItMayDo) {
  if (tessera::fixture::is_sanitized)
    GTEST_SKIP() << "the sanitizers' locks are not made for a fork of threads";
  ASSERT_EQ(outcome("prepare", 0, folder_), "status 42");
  const char* const ways[] = {"wait",  "all",  "exit", "evaluate", "all", "compile",
                              "async", "load", "ask",  "drop",     "read"};
  std::mt19937 random(22);
  for (int run = 0; run < run_count(); ++run) {
    const std::string way = std::string("fork ") + ways[static_cast<std::size_t>(run) % std::size(ways)];
    const int moment = static_cast<int>(random() % (run % 4 == 3 ? 300'000U : 60'000U));
    if (run % 3 == 0) std::filesystem::remove_all(folder_ + "/tessera");
    EXPECT_EQ(outcome(way, moment, folder_), "status 42")
        << "run " << run << ", " << way << " after " << moment;
  }
}
