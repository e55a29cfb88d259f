#include "tessera/stream/flat_map.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

using namespace tessera::stream;

namespace {

TEST(FlatMap, AgreesWithAMapOfTheStandardLibrary) {
  std::mt19937_64 random(7);
  FlatMap<std::uint64_t> map;
  std::map<std::uint64_t, std::uint64_t> expected;
  for (int i = 0; i < 100'000; ++i) {
    const std::uint64_t key = random() % 300, value = random();
    switch (random() % 8) {
      case 0:
        map.erase(key);
        expected.erase(key);
        break;
      case 1:
        if (i % 1000 != 1) break;
        map.clear();
        expected.clear();
        break;
      case 2:
        if (i % 100 != 2) break;
        map.erase_if([&](std::uint64_t held) { return held % 3 == 0; });
        std::erase_if(expected, [&](const auto& entry) { return entry.second % 3 == 0; });
        break;
      default:
        map[key] = value;
        expected[key] = value;
    }
    ASSERT_EQ(map.size(), expected.size());
    const auto at = expected.find(key);
    ASSERT_EQ(map.find(key) != nullptr, at != expected.end());
    if (at != expected.end()) {
      ASSERT_EQ(*map.find(key), at->second);
    }
  }
  std::map<std::uint64_t, std::uint64_t> found;
  map.for_each([&](std::uint64_t key, std::uint64_t value) { found[key] = value; });
  EXPECT_EQ(found, expected);
}

}  // namespace
