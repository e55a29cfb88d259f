#include "tessera/cover/sequence_table.h"

#include <gtest/gtest.h>

using namespace tessera::cover;

namespace {

using Words = std::vector<std::uint64_t>;

TEST(SequenceTable, GivesEqualSequencesTheSameNumber) {
  SequenceTable table;
  EXPECT_EQ(table.intern(Words{1, 2, 3}), 0U);
  EXPECT_EQ(table.intern(Words{1, 2}), 1U);
  EXPECT_EQ(table.intern(Words{}), 2U);
  EXPECT_EQ(table.intern(Words{1, 2, 3}), 0U);
  EXPECT_EQ(table.intern(Words{}), 2U);
  EXPECT_EQ(table.size(), 3U);
}

TEST(SequenceTable, GivesBackWhatWentIn) {
  SequenceTable table;
  for (std::uint64_t i = 0; i < 1000; ++i) table.intern(Words(i % 7, i));
  const std::uint32_t number = table.intern(Words{5, 6});
  EXPECT_EQ(Words(table[number].begin(), table[number].end()), (Words{5, 6}));
}

TEST(SequenceTable, TellsSequencesApartThatCollide) {
  SequenceTable table(0);
  for (std::uint64_t i = 0; i < 300; ++i) EXPECT_EQ(table.intern(Words{i, 2 * i}), i);
  for (std::uint64_t i = 0; i < 300; ++i) EXPECT_EQ(table.intern(Words{i, 2 * i}), i);
}

}  // namespace
