#include "benchmarks/compare/worker.h"

#include <atomic>
#include <charconv>
#include <chrono>
#include <cmath>
#include <ctime>
#include <exception>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <thread>

using namespace tessera::compare;
using Clock = std::chrono::steady_clock;

namespace {

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Of all threads of this program.
double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// Half the time of a round trip of one cache line, in ns: it differs by six from hour to hour on virtual
/// machines, and two-thread figures with it.
double line_transfer() {
  constexpr int trips = 20'000;
  std::atomic<int> ball{0};
  std::thread other([&] {
    for (int i = 0; i < trips; ++i) {
      for (long spins = 0; ball.load(std::memory_order_acquire) != 2 * i + 1; ++spins)
        if (spins % 100'000 == 99'999) std::this_thread::yield();
      ball.store(2 * i + 2, std::memory_order_release);
    }
  });
  const auto begin = Clock::now();
  for (int i = 0; i < trips; ++i) {
    ball.store(2 * i + 1, std::memory_order_release);
    for (long spins = 0; ball.load(std::memory_order_acquire) != 2 * i + 2; ++spins)
      if (spins % 100'000 == 99'999) std::this_thread::yield();
  }
  const double out = seconds_since(begin) * 1e9 / (2.0 * trips);
  other.join();
  return out;
}

void answer_prepare(std::istream& line, const Prepare& prepare, Workload& workload) {
  std::string kind;
  line >> kind;
  std::vector<std::string> words;
  for (std::string word; line >> word;) words.push_back(word);
  workload = {};
  workload = prepare(kind, words);
  double sum = 0, size = 0;
  for (const float x : workload.first) {
    sum += x;
    size += std::fabs(x);
  }
  std::cout << "ok " << sum << " " << size << std::endl;
}

void answer_run(std::istream& words, const Workload& workload) {
  long count = 0;
  words >> count;
  const auto begin = Clock::now();
  const double processor_begin = processor_seconds();
  for (long i = 0; i < count; ++i) workload.run();
  std::cout << seconds_since(begin) << " " << processor_seconds() - processor_begin << std::endl;
}

}  // namespace

int tessera::compare::serve(const Prepare& prepare) {
  Workload workload;
  std::cout.precision(9);
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string command;
    words >> command;
    try {
      if (command == "prepare")
        answer_prepare(words, prepare, workload);
      else if (command == "run" && workload.run)
        answer_run(words, workload);
      else if (command == "probe")
        std::cout << line_transfer() << std::endl;
      else
        std::cout << "missing nothing is prepared, or an unknown command: " << command << std::endl;
    } catch (const std::exception& error) {
      std::string reason = error.what();
      for (char& c : reason)
        if (c == '\n') c = ' ';
      std::cout << "missing " << reason << std::endl;
    }
  }
  return 0;
}

std::vector<std::int64_t> tessera::compare::sizes_of(std::span<const std::string> words) {
  std::vector<std::int64_t> out;
  for (const std::string& word : words) {
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), out.emplace_back());
    if (error != std::errc{} || end != word.data() + word.size())
      throw std::runtime_error("not a size: " + word);
  }
  return out;
}

std::vector<float> tessera::compare::numbers(std::int64_t count, std::uint32_t seed, Spread spread) {
  std::vector<float> out(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::uint32_t bits = static_cast<std::uint32_t>(i) * 2654435761U + seed * 40503U;
    bits ^= bits >> 15;
    bits *= 0x85ebca6bU;
    bits ^= bits >> 13;
    const double unit = static_cast<double>(bits >> 8) / 8388608.0 - 1.0;
    out[i] = static_cast<float>(spread.offset + spread.scale * unit);
  }
  return out;
}
