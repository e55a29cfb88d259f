#include "tessera/runtime/cpu/processor_place.h"

#ifdef __linux__
#include <pthread.h>
#include <sched.h>

namespace {

/// Those that the process may use, as it was started.
const cpu_set_t& allowed_processors() {
  static const cpu_set_t allowed = [] {
    cpu_set_t out;
    CPU_ZERO(&out);
    sched_getaffinity(0, sizeof(out), &out);
    return out;
  }();
  return allowed;
}

}  // namespace

void tessera::runtime::cpu::ProcessorPlace::leave_to_caller(std::span<std::thread> workers) {
  const int here = sched_getcpu();
  if (here == left_) return;
  left_ = here;
  cpu_set_t others = allowed_processors();
  if (here < 0 || here >= CPU_SETSIZE) return;
  CPU_CLR(static_cast<std::size_t>(here), &others);
  if (CPU_COUNT(&others) == 0) return;
  for (std::thread& worker : workers) pthread_setaffinity_np(worker.native_handle(), sizeof(others), &others);
}

#else

void tessera::runtime::cpu::ProcessorPlace::leave_to_caller(std::span<std::thread>) {}

#endif
