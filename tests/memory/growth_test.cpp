// Any pattern of threads and structures leaves memory as it is.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "tessera/tensor/scope.h"
#include "tests/memory/patterns.h"
#include "tests/support/repeats.h"
#include "tests/support/resident.h"

using namespace tessera::fixture;

namespace {

/// Code is made anew, not read from files.
class Growth : public ::testing::Test {
 protected:
  Growth() {
    std::string name = (std::filesystem::temp_directory_path() / "tessera-growth-XXXXXX").string();
    folder_ = mkdtemp(name.data());
    setenv("XDG_CACHE_HOME", folder_.c_str(), 1);
  }
  ~Growth() override { std::filesystem::remove_all(folder_); }

 private:
  std::string folder_;
};

/// Repeats a pattern: after the warm-up, in which tables are filled, the most that is resident stays as it is.
/// What was lost in so many rounds was several times the bound.
void expect_flat(std::string_view pattern, int warm_up, int rounds) {
  const Round round = begin_pattern(pattern);
  for (int i = 0; i < repeats(warm_up); ++i) round();
  tessera::Engine::default_engine()->wait_for_plans();
  std::int64_t evaluations = 0;
  const std::int64_t before = resident_bytes();
  std::int64_t after = before;
  for (int i = 0; i < repeats(rounds); ++i) {
    evaluations += round();
    after = std::max(after, resident_bytes());
  }
  std::printf("%s: %.1f MiB, %.1f MiB more in %lld evaluations\n", std::string(pattern).c_str(),
              in_mebibytes(before), in_mebibytes(after - before), static_cast<long long>(evaluations));
  if (!resident_is_judged) return;
  EXPECT_LT(after - before, 16 * MiB) << pattern;
}

}  // namespace

TEST_F(Growth, Trap_U5_StructuresThatNeverRepeat) { expect_flat("hot_structures", 40, 200); }

TEST_F(Growth, StructuresAndSizesThatAreSeenOnce) {
  expect_flat("new_structures", 10, 30);
  expect_flat("new_sizes", 20, 20);
}

TEST_F(Growth, Trap_U6_ThreadsThatLiveForOneEvaluation) { expect_flat("short_threads", 2, 20); }

TEST_F(Growth, Trap_U6_EvaluationsInTheBackground) { expect_flat("eval_async", 5, 50); }

TEST_F(Growth, Trap_U6_SixteenThreadsThatExchangeTensors) { expect_flat("exchange", 5, 50); }
