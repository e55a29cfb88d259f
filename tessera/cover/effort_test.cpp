#include "tessera/cover/effort.h"

#include <gtest/gtest.h>

using namespace tessera::cover;

namespace {

TEST(Effort, WithoutLimitsItIsNeverOver) {
  Effort effort;
  effort.spend(std::uint64_t{1} << 62);
  EXPECT_FALSE(effort.is_over());
  EXPECT_TRUE(effort.leaves(std::uint64_t{1} << 40));
  EXPECT_FALSE(effort.work_left());
  EXPECT_FALSE(effort.time_left());
}

TEST(Effort, IsOverWhenTheWorkIsDone) {
  Effort effort(100, std::nullopt);
  effort.spend(60);
  EXPECT_FALSE(effort.is_over());
  EXPECT_TRUE(effort.leaves(39));
  EXPECT_FALSE(effort.leaves(40));
  EXPECT_EQ(effort.work_left(), 40U);
  effort.spend(60);
  EXPECT_TRUE(effort.is_over());
  EXPECT_EQ(effort.work_left(), 0U);
  EXPECT_TRUE(Effort(0, std::nullopt).is_over());
}

TEST(Effort, IsOverWhenTheTimeHasCome) {
  EXPECT_TRUE(Effort(std::nullopt, std::chrono::milliseconds(0)).is_over());
  const Effort hour(std::nullopt, std::chrono::hours(1));
  EXPECT_FALSE(hour.is_over());
  EXPECT_FALSE(hour.leaves(2 * std::uint64_t{3'600'000'000'000}));
}

TEST(Effort, SharesWhatIsLeft) {
  Effort effort(1000, std::nullopt);
  const Effort::End end = effort.end();
  effort.spend(200);
  effort.set_end(effort.share(end, 4));
  EXPECT_EQ(effort.work_left(), 200U);
  effort.spend(50);  // what a part leaves goes to the others
  effort.set_end(effort.share(end, 3));
  EXPECT_EQ(effort.work_left(), 250U);
  effort.spend(900);
  EXPECT_EQ(effort.share(end, 2).work, end.work) << "nothing is left to share";
  EXPECT_EQ(Effort().share(Effort().end(), 8).work, Effort().end().work);
}

}  // namespace
