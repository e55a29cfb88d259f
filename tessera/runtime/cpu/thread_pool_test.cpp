#include "tessera/runtime/cpu/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <new>

#include "tessera/base/text.h"
#include "tests/support/growth.h"

#ifdef __linux__
#include <pthread.h>
#include <sched.h>
#endif

using namespace tessera::runtime::cpu;

TEST(ThreadCount, IsAWholeNumber) {
  for (const auto& [text, count] : {std::pair{"1", 1U}, {"3", 3U}, {"256", 256U}}) {
    const auto parsed = parse_thread_count(text);
    ASSERT_TRUE(parsed) << parsed.error().to_text();
    EXPECT_EQ(*parsed, count);
  }
  for (const char* text : {"", "0", "-1", "1e3", "3.9", "257", "1000", "99999999999", "abc", " 2", "2 "}) {
    const auto parsed = parse_thread_count(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().message(),
              tessera::cat("'", text, "' is no number of threads, which is a whole number from 1 to 256"));
  }
}

TEST(ThreadCount, WhatTheEnvironmentSaysWrongIsSaidOnce) {
  const char* const before = std::getenv("TESSERA_THREADS");
  const std::string kept = before == nullptr ? "" : before;
  setenv("TESSERA_THREADS", "3", 1);
  EXPECT_EQ(thread_count(), 3U);
  setenv("TESSERA_THREADS", "1e3", 1);
  testing::internal::CaptureStderr();
  const unsigned count = thread_count();
  EXPECT_EQ(thread_count(), count);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(said, tessera::cat("tessera: TESSERA_THREADS: '1e3' is no number of threads, which is a whole "
                               "number from 1 to 256; there are ",
                               count, "\n"));
  EXPECT_EQ(thread_count(2), 2U);
  before == nullptr ? unsetenv("TESSERA_THREADS") : setenv("TESSERA_THREADS", kept.c_str(), 1);
}

TEST(ThreadPool, EveryItemIsDoneOnce) {
  ThreadPool pool(4);
  for (const std::int64_t items : {0, 1, 7, 1000, 12345})
    for (const std::int64_t piece : {1, 3, 64, 100'000}) {
      std::vector<std::atomic<int>> done(static_cast<std::size_t>(items));
      pool.run(items, piece, [&](std::int64_t begin, std::int64_t end, unsigned thread) {
        EXPECT_LT(thread, pool.size());
        for (std::int64_t i = begin; i < end; ++i) ++done[static_cast<std::size_t>(i)];
      });
      for (const auto& count : done) EXPECT_EQ(count, 1);
    }
}

// Many small jobs: threads that come late find the next job, not the last one.
TEST(ThreadPool, ManySmallJobs) {
  ThreadPool pool(3);
  std::atomic<std::int64_t> sum = 0;
  for (int job = 0; job < 20'000; ++job) {
    std::int64_t local[3] = {0, 0, 0};
    pool.run(9, 1, [&](std::int64_t begin, std::int64_t, unsigned thread) { local[thread] += begin; });
    sum += local[0] + local[1] + local[2];
  }
  EXPECT_EQ(sum, 20'000 * 36);
}

TEST(ThreadPool, SeveralCallersAtOnce) {
  ThreadPool pool(2);
  std::atomic<std::int64_t> sum = 0;
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c)
    callers.emplace_back([&] {
      for (int job = 0; job < 500; ++job)
        pool.run(100, 10, [&](std::int64_t begin, std::int64_t end, unsigned) { sum += end - begin; });
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum, 4 * 500 * 100);
}

TEST(ThreadPool, ThreadsThatSleptWakeUp) {
  ThreadPool pool(2);
  for (int i = 0; i < 5; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::atomic<int> count = 0;
    pool.run(64, 1, [&](std::int64_t, std::int64_t, unsigned) { ++count; });
    EXPECT_EQ(count, 64);
  }
}

// Whoever throws, the caller gets it when nobody works any more, and the pool is as before.
TEST(ThreadPool, WhatAPieceThrowsIsThrownToTheCaller) {
  ThreadPool pool(3);
  for (int job = 0; job < 200; ++job) {
    std::atomic<int> running = 0;
    const auto work = [&](std::int64_t begin, std::int64_t, unsigned) {
      ++running;
      std::this_thread::sleep_for(std::chrono::microseconds(5));
      --running;
      if (begin % 5 == job % 5) throw std::bad_alloc();
    };
    EXPECT_THROW(pool.run(30, 1, work), std::bad_alloc);
    EXPECT_EQ(running, 0);
    std::atomic<int> count = 0;
    pool.run(30, 1, [&](std::int64_t, std::int64_t, unsigned) { ++count; });
    EXPECT_EQ(count, 30);
  }
}

TEST(ThreadPool, PiecesBehindAFailureAreLeftOut) {
  ThreadPool pool(2);
  std::atomic<int> begun = 0;
  const auto work = [&](std::int64_t, std::int64_t, unsigned) {
    ++begun;
    throw std::bad_alloc();
  };
  EXPECT_THROW(pool.run(1000, 1, work), std::bad_alloc);
  EXPECT_LE(begun, 2);
}

#ifdef __linux__
// A caller whose part is done leaves its processor to others.
TEST(ThreadPool, TheCallerSleepsWhileItWaits) {
  ThreadPool pool(2);
  std::atomic<bool> has_begun = false;
  const auto began = std::chrono::steady_clock::now();
  const double computed = tessera::fixture::processor_seconds([&] {
    pool.run(2, 1, [&](std::int64_t, std::int64_t, unsigned thread) {
      if (thread == 0) {
        while (!has_begun) std::this_thread::sleep_for(std::chrono::microseconds(100));
      } else {
        has_begun = true;
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
      }
    });
  });
  const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - began;
  EXPECT_LT(computed, waited.count() / 4);
}

// A worker on the caller's processor would wait for it to end.
TEST(ThreadPool, WorkersLeaveTheCallersProcessor) {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  if (CPU_COUNT(&allowed) < 2) GTEST_SKIP() << "there is one processor";
  ThreadPool pool(3);
  pool.run(8, 1, [](std::int64_t, std::int64_t, unsigned) {});
  std::atomic<int> beside = 0;
  for (int here = 0, turns = 0; turns < 8; here = (here + 1) % CPU_SETSIZE) {
    if (!CPU_ISSET(static_cast<std::size_t>(here), &allowed)) continue;
    ++turns;
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(static_cast<std::size_t>(here), &only);
    ASSERT_EQ(pthread_setaffinity_np(pthread_self(), sizeof(only), &only), 0);
    pool.run(64, 1, [&](std::int64_t, std::int64_t, unsigned thread) {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
      if (thread == 0) return;
      EXPECT_NE(sched_getcpu(), here);
      ++beside;
    });
  }
  pthread_setaffinity_np(pthread_self(), sizeof(allowed), &allowed);
  EXPECT_GT(beside, 0);
}
#endif

TEST(ThreadPool, Trap_U14_LeavesOutWhatWouldBeginAfterTheEndOfTheRun) {
  for (const unsigned threads : {1U, 4U}) {
    ThreadPool pool(threads);
    tessera::RunMeter meter({.seconds = 0.01});
    const tessera::RunMeter::Scope scope(&meter);
    std::atomic<int> late{0};
    const auto spin = [&](std::int64_t, std::int64_t, unsigned) {
      if (meter.is_late()) ++late;  // began in time, or between two looks at the clock
      while (!meter.is_late()) {
      }
    };
    EXPECT_THROW(pool.run(1'000'000, 1, spin), tessera::Exception);
    EXPECT_LE(late.load(), static_cast<int>(threads));
  }
}
