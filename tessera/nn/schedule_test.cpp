#include "tessera/nn/schedule.h"

#include <gtest/gtest.h>

using namespace tessera::optim;

namespace {

TEST(Schedule, warm_up_reaches_the_rate_and_stays) {
  EXPECT_DOUBLE_EQ(warm_up(0.8, 0, 4), 0.2);
  EXPECT_DOUBLE_EQ(warm_up(0.8, 2, 4), 0.6);
  EXPECT_DOUBLE_EQ(warm_up(0.8, 3, 4), 0.8);
  EXPECT_DOUBLE_EQ(warm_up(0.8, 100, 4), 0.8);
  EXPECT_DOUBLE_EQ(warm_up(0.8, 0, 0), 0.8);
}

TEST(Schedule, step_decay_falls_at_steps) {
  EXPECT_DOUBLE_EQ(step_decay(1, 9, 10), 1);
  EXPECT_DOUBLE_EQ(step_decay(1, 10, 10), 0.1);
  EXPECT_DOUBLE_EQ(step_decay(1, 25, 10, 0.5), 0.25);
}

TEST(Schedule, exponential_decay_is_a_power) { EXPECT_DOUBLE_EQ(exponential_decay(2, 3, 0.5), 0.25); }

TEST(Schedule, cosine_decay_goes_from_the_rate_to_the_last) {
  EXPECT_DOUBLE_EQ(cosine_decay(1, 0, 10), 1);
  EXPECT_DOUBLE_EQ(cosine_decay(1, 5, 10), 0.5);
  EXPECT_NEAR(cosine_decay(1, 10, 10), 0, 1e-15);
  EXPECT_DOUBLE_EQ(cosine_decay(1, 99, 10, 0.25), 0.25);
  EXPECT_DOUBLE_EQ(cosine_decay(1, 5, 10, 0.5), 0.75);
}

}  // namespace
