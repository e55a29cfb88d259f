// Work that takes long for each of many cases, on several threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <thread>
#include <vector>

namespace tessera::fixture {

/// Calls `work(i)` for each i below `count`, on as many threads as the machine has, at most 16, or as
/// TESSERA_TEST_THREADS says.
template <class F>
void side_by_side(std::size_t count, const F& work) {
  const char* const said = std::getenv("TESSERA_TEST_THREADS");
  const std::size_t most_threads =
      said == nullptr ? 16 : static_cast<std::size_t>(std::max(1, std::atoi(said)));
  std::atomic<std::size_t> next{0};
  const auto take = [&] {
    for (std::size_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<std::thread> helpers;
  const std::size_t machine = std::max(1u, std::thread::hardware_concurrency());
  for (std::size_t i = 1; i < std::min({machine, most_threads, count}); ++i) helpers.emplace_back(take);
  take();
  for (std::thread& helper : helpers) helper.join();
}

}  // namespace tessera::fixture
