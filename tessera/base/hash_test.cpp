#include "tessera/base/hash.h"

#include <gtest/gtest.h>

#include <set>

using namespace tessera;

namespace {

TEST(Hash, IsTheSameInEveryProcess) {
  EXPECT_EQ(Hasher().finish().to_hex(), "b4cc3200f8d00bad931b24614dd67c8d");
  EXPECT_EQ(hash_text("tessera").to_hex(), "41a29c4ca6a21ac1e942eda5438beb93");
}

TEST(Hash, LengthIsPartOfIt) {
  EXPECT_NE(Hasher().add_text("ab").add_text("c").finish(), Hasher().add_text("a").add_text("bc").finish());
  EXPECT_NE(hash_text(""), Hasher().finish());
  EXPECT_NE(hash_text(std::string_view("\0", 1)), hash_text(std::string_view("\0\0", 2)));
}

TEST(Hash, OrderAndDomainMatter) {
  EXPECT_NE(Hasher().add(1).add(2).finish(), Hasher().add(2).add(1).finish());
  EXPECT_NE(Hasher(1).add(2).finish(), Hasher(2).add(2).finish());
}

TEST(Hash, SmallIntegersDoNotCollide) {
  std::set<Hash128> seen;
  for (std::uint64_t a = 0; a < 300; ++a)
    for (std::uint64_t b = 0; b < 300; ++b) seen.insert(Hasher().add(a).add(b).finish());
  EXPECT_EQ(seen.size(), 90000u);
}

TEST(Hash, EveryInputBitChangesAboutHalfOfTheOutput) {
  const Hash128 base = Hasher().add(0).add(42).finish();
  for (int bit = 0; bit < 64; ++bit) {
    const Hash128 other = Hasher().add(std::uint64_t{1} << bit).add(42).finish();
    const int changed = std::popcount(base.high ^ other.high) + std::popcount(base.low ^ other.low);
    EXPECT_GT(changed, 36) << bit;
    EXPECT_LT(changed, 92) << bit;
  }
}

TEST(Hash, HexHasBothHalvesInOrder) {
  EXPECT_EQ((Hash128{0x0123456789abcdefULL, 0xfedcba9876543210ULL}).to_hex(),
            "0123456789abcdeffedcba9876543210");
}

}  // namespace
