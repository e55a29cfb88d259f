// A bounded run of random graph descriptions from seed 1 or TESSERA_SEED. tools/fuzz --kind descriptions goes
// on.
#include "tests/differential/description_check.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/support/repeats.h"

using namespace tessera::differential;

TEST(RandomDescriptions, ThoseFoundBeforeStayMended) {
  for (const auto& entry :
       std::filesystem::directory_iterator(TESSERA_SOURCE_DIR "/tests/differential/found")) {
    if (entry.path().extension() != ".seed") continue;
    std::uint64_t seed = 0;
    ASSERT_TRUE(std::ifstream(entry.path()) >> seed) << entry.path();
    const DescriptionVerdict verdict = check_description(seed);
    EXPECT_FALSE(verdict.failure) << entry.path() << "\n" << *verdict.failure;
  }
}

TEST(RandomDescriptions, RunAsTheyAreListedWhateverChanges) {
  const char* given = std::getenv("TESSERA_SEED");
  const std::uint64_t first = given == nullptr ? 1 : std::strtoull(given, nullptr, 10);
  constexpr int descriptions = tessera::fixture::repeats(1000);
  int ran = 0, launches = 0, updates = 0;
  std::uint64_t seed = first;
  for (; ran < descriptions; ++seed) {
    const DescriptionVerdict verdict = check_description(seed);
    ASSERT_FALSE(verdict.failure) << "TESSERA_SEED=" << seed << "\n" << *verdict.failure;
    ran += verdict.ran ? 1 : 0;
    launches += verdict.launches;
    updates += verdict.updates;
    ASSERT_LT(seed - first, 100U + 3U * static_cast<unsigned>(ran)) << "too few of them are valid";
  }
  std::printf("%d descriptions, %d launches, %d updates, seeds %llu to %llu\n", ran, launches, updates,
              static_cast<unsigned long long>(first), static_cast<unsigned long long>(seed - 1));
}
