#include "benchmarks/gpu/quiet_core.h"

#include <sched.h>

#include <chrono>
#include <cstdint>
#include <limits>

using namespace tessera::benchmarks;

namespace {

using Clock = std::chrono::steady_clock;

bool run_on(int core) {
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(core, &only);
  return sched_setaffinity(0, sizeof only, &only) == 0;
}

}  // namespace

struct OnQuietCore::Before {
  cpu_set_t cores;
};

/// Many instructions that do not wait for each other: what two halves of a core share.
double tessera::benchmarks::time_of_instructions() {
  std::uint64_t a = 1, b = 2, c = 3, d = 4, e = 5, f = 6;
  const auto begin = Clock::now();
  for (std::uint64_t i = 0; i < 30'000; ++i) {
    a += b ^ i, b += i, c += d ^ i, d += i, e += f ^ i, f += i;
    asm volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
  }
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

std::optional<int> tessera::benchmarks::quiet_core(const TimedWork& work) {
  constexpr int tries = 8;
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return std::nullopt;
  std::optional<int> out;
  double best = std::numeric_limits<double>::infinity();
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &allowed) || !run_on(core)) continue;
    for (int i = 0; i < tries; ++i) {
      const double time = work();
      if (time < best) best = time, out = core;
    }
  }
  sched_setaffinity(0, sizeof allowed, &allowed);
  return out;
}

OnQuietCore::OnQuietCore(const TimedWork& work) {
  auto before = std::make_unique<Before>();
  if (sched_getaffinity(0, sizeof before->cores, &before->cores) != 0) return;
  const auto core = quiet_core(work);
  if (core && run_on(*core)) before_ = std::move(before);
}

OnQuietCore::~OnQuietCore() {
  if (before_ != nullptr) sched_setaffinity(0, sizeof before_->cores, &before_->cores);
}
