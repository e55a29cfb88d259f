#include "tessera/runtime/cpu/thread_pool.h"

#include <gtest/gtest.h>

#include <chrono>

#ifdef __linux__
#include <pthread.h>
#include <sched.h>
#endif

using namespace tessera::runtime::cpu;

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

#ifdef __linux__
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
