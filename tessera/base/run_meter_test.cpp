#include "tessera/base/run_meter.h"

#include <gtest/gtest.h>

#include <thread>

using namespace tessera;

namespace {

TEST(RunMeter, WithoutAScopeNothingIsLate) {
  EXPECT_EQ(RunMeter::current(), nullptr);
  EXPECT_TRUE(RunMeter::check());
  RunMeter::check_or_throw();
}

TEST(RunMeter, ScopesNestAndBelongToTheirThread) {
  RunMeter late({.seconds = -1}), unlimited({});
  const RunMeter::Scope outer(&late);
  {
    const RunMeter::Scope inner(&unlimited);
    EXPECT_TRUE(RunMeter::check());
  }
  std::thread([] { EXPECT_TRUE(RunMeter::check()); }).join();
  EXPECT_EQ(RunMeter::check().error().code(), ErrorCode::limit);
  EXPECT_THROW(RunMeter::check_or_throw(), Exception);
}

TEST(RunMeter, WorkAddsUp) {
  RunMeter meter({.work = 10});
  EXPECT_TRUE(meter.take_work(6));
  EXPECT_FALSE(meter.has_ended(Error(ErrorCode::limit, "too deep")));
  const auto more = meter.take_work(5);
  ASSERT_FALSE(more);
  EXPECT_TRUE(meter.has_ended(more.error()));
  EXPECT_FALSE(meter.has_ended(Error(ErrorCode::shape, "other")));
}

}  // namespace
