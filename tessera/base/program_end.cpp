#include "tessera/base/program_end.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <thread>

#include "tessera/base/forked_child.h"

using namespace tessera;

namespace {

/// How long exit() waits for those inside. Code is made in less; what runs longer is taken apart while it
/// runs.
constexpr std::chrono::seconds longest_wait{5};
constexpr std::chrono::microseconds between_looks{50};

// Trivially destroyed: usable until the process is gone.
constinit std::atomic<int> inside{0}, openings{0}, forks{0};
constinit std::atomic<bool> ends{false};
constinit thread_local int depth = 0, openings_of_thread = 0;
constinit thread_local bool is_ending = false;

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
  if (!is_forked_child()) wait_until(inside, depth > 0 ? 1 : 0);
}

struct WaitsForOpenings {
  WaitsForOpenings() = default;
  WaitsForOpenings(const WaitsForOpenings&) = delete;
  WaitsForOpenings& operator=(const WaitsForOpenings&) = delete;
  ~WaitsForOpenings() {
    if (!is_forked_child()) wait_until(openings, 0);
  }
};

/// A library that is being opened registers what runs at the end of the process, under a lock of the C library's that
/// stays locked in a child that is forked meanwhile: its exit() would never end. So forks wait for those that are
/// being opened, and nobody begins to open one.
void begin_fork() {
  forks.fetch_add(1);
  wait_until(openings, openings_of_thread > 0 ? 1 : 0);
}
void end_fork() { forks.fetch_sub(1); }

/// Once before the first library is opened, so that nobody opens one while the program ends.
void count_from_now() {
  static const bool is_registered = [] {
    note_forks();
    static_cast<void>(pthread_atfork(begin_fork, end_fork, end_fork));
    return std::atexit(at_end) == 0;
  }();
  static_cast<void>(is_registered);
}

}  // namespace

ForeignStay::ForeignStay() : is_inside_(!is_forked_child()) {
  if (!is_inside_) return;
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
  if (!is_inside() || openings_of_thread++ > 0) return;
  count_from_now();
  for (; openings.fetch_add(1), forks.load() > 0; wait_until(forks, 0)) openings.fetch_sub(1);
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
  if (!is_inside()) return;
  registers_ = {};
  // What the library has registered so far runs behind this.
  static_cast<void>(std::atexit(at_end));
  if (--openings_of_thread == 0) openings.fetch_sub(1);
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
