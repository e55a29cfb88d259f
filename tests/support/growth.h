// How the time of something grows with its size: a verdict that holds on any machine, however busy.
#pragma once

#include <algorithm>
#include <ctime>
#include <limits>

namespace tessera::fixture {

/// Processor time of this thread in `work()`, in seconds: what other threads and processes take is not in it.
template <class Work>
double processor_seconds(const Work& work) {
  const auto now = [] {
    timespec used{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
  };
  const double began = now();
  work();
  return now() - began;
}

/// The time of `much()` over that of `little()`: the least of three each, in turns in one run.
template <class Little, class Much>
double times_as_long(const Little& little, const Much& much) {
  double least_little = std::numeric_limits<double>::infinity(), least_much = least_little;
  for (int turn = 0; turn < 3; ++turn) {
    least_little = std::min(least_little, processor_seconds(little));
    least_much = std::min(least_much, processor_seconds(much));
  }
  return least_much / std::max(least_little, 1e-6);
}

/// The same of `work(size)` for two sizes.
template <class Size, class Work>
double growth(Size small, Size large, const Work& work) {
  return times_as_long([&] { work(small); }, [&] { work(large); });
}

}  // namespace tessera::fixture
