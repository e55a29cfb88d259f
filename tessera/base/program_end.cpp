#include "tessera/base/program_end.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <thread>

using namespace tessera;

namespace {

/// How long exit() waits for those inside. Code is made in less; what runs longer is taken apart while it
/// runs.
constexpr std::chrono::seconds longest_wait{5};
constexpr std::chrono::microseconds between_looks{50};

// Trivially destroyed: usable until the process is gone.
constinit std::atomic<int> inside{0}, openings{0};
constinit std::atomic<bool> ends{false};
/// Whose threads were counted: those of a parent are not there in the child of a fork.
constinit std::atomic<pid_t> counted_process{0};
constinit thread_local int depth = 0;
constinit thread_local bool is_ending = false;

bool is_child() {
  const pid_t counted = counted_process.load();
  return counted != 0 && counted != getpid();
}

/// Until the count is so low, but not for ever.
void wait_until(const std::atomic<int>& count, int wanted) {
  const auto begin = std::chrono::steady_clock::now();
  while (count.load() > wanted && std::chrono::steady_clock::now() - begin < longest_wait)
    std::this_thread::sleep_for(between_looks);
}

/// Runs as often as it was registered. exit() may have been called inside.
void at_end() {
  is_ending = true;
  ends.store(true);
  if (!is_child()) wait_until(inside, depth > 0 ? 1 : 0);
}

struct WaitsForOpenings {
  WaitsForOpenings() = default;
  WaitsForOpenings(const WaitsForOpenings&) = delete;
  WaitsForOpenings& operator=(const WaitsForOpenings&) = delete;
  ~WaitsForOpenings() {
    if (!is_child()) wait_until(openings, 0);
  }
};

/// Once before the first library is opened, so that nobody opens one while the program ends.
void count_from_now() {
  static const bool is_registered = [] {
    counted_process.store(getpid());
    return std::atexit(at_end) == 0;
  }();
  static_cast<void>(is_registered);
}

}  // namespace

ForeignStay::ForeignStay() : is_inside_(true) {
  if (depth++ > 0) return;
  inside.fetch_add(1);
  if (!ends.load()) return;
  inside.fetch_sub(1);
  --depth;
  is_inside_ = false;
}

ForeignStay::~ForeignStay() {
  if (is_inside_ && --depth == 0) inside.fetch_sub(1);
}

ForeignOpening::ForeignOpening() {
  count_from_now();
  openings.fetch_add(1);
  try {
    registers_ = std::jthread([](const std::stop_token& stop) {
      while (!stop.stop_requested() && !ends.load()) {
        static_cast<void>(std::atexit(at_end));
        std::this_thread::sleep_for(between_looks);
      }
    });
  } catch (const std::exception&) {  // without one, what the library makes may go before it is opened
  }
}

ForeignOpening::~ForeignOpening() {
  registers_ = {};
  // What the library has registered so far runs behind this.
  static_cast<void>(std::atexit(at_end));
  openings.fetch_sub(1);
}

void tessera::end_behind_openings() {
  thread_local const WaitsForOpenings at_the_end;
  static_cast<void>(at_the_end);
}

bool tessera::program_ends() { return ends.load(std::memory_order_relaxed); }
bool tessera::is_ending_thread() { return is_ending; }

void tessera::wait_for_program_end() {
  for (;;) pause();
}
