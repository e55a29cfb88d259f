#include "tessera/runtime/cpu/thread_pool.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <system_error>

using namespace tessera::runtime::cpu;

namespace {

/// How long a thread looks for work before it sleeps, and how often between two looks at the clock. Waking
/// one that sleeps takes 5 to 50 microseconds, what lies between two evaluations of a loop mostly less than
/// this.
constexpr std::chrono::microseconds longest_look{200};
constexpr int looks_at_once = 64;
constexpr unsigned most_threads = 256;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// Looks until `is_there` or for a while. Whether it came.
template <class F>
bool look_for(F&& is_there) {
  const auto begin = std::chrono::steady_clock::now();
  do {
    for (int looks = 0; looks < looks_at_once; ++looks) {
      if (is_there()) return true;
      relax();
    }
  } while (std::chrono::steady_clock::now() - begin < longest_look);
  return is_there();
}

unsigned wanted(unsigned threads) {
  if (threads != 0) return std::min(threads, most_threads);
  unsigned from_environment = 0;
  if (const char* text = std::getenv("TESSERA_THREADS"))
    std::from_chars(text, text + std::strlen(text), from_environment);
  if (from_environment == 0) from_environment = std::max(1U, std::thread::hardware_concurrency());
  return std::min(from_environment, most_threads);
}

}  // namespace

ThreadPool::ThreadPool(unsigned threads) {
  const unsigned count = wanted(threads);
  workers_.reserve(count);
  try {
    for (unsigned i = 1; i < count; ++i) workers_.emplace_back([this, i] { work(i); });
  } catch (const std::system_error&) {
    // Fewer threads than wanted: slower, not wrong.
  }
}

ThreadPool::~ThreadPool() {
  stopped_.store(true);
  wake_.fetch_add(1);
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run_pieces(std::int64_t items, std::int64_t piece, Function function, void* context) {
  if (items <= 0) return;
  const std::int64_t pieces = (items + piece - 1) / piece;
  std::unique_lock lock(busy_, std::try_to_lock);
  if (!lock || workers_.empty() || pieces == 1 || pieces > INT32_MAX) {
    function(context, 0, items, 0);
    return;
  }
  function_.store(function, std::memory_order_relaxed);
  context_.store(context, std::memory_order_relaxed);
  items_.store(items, std::memory_order_relaxed);
  piece_.store(piece, std::memory_order_relaxed);
  pieces_.store(static_cast<std::uint32_t>(pieces), std::memory_order_relaxed);
  done_.store(0, std::memory_order_relaxed);
  place_.leave_to_caller(workers_);
  const std::uint64_t job = (ticket_.load(std::memory_order_relaxed) >> 32) + 1;
  ticket_.store(job << 32, std::memory_order_release);
  wake_.fetch_add(1, std::memory_order_acq_rel);
  if (sleeping_.load(std::memory_order_seq_cst) > 0) wake_.notify_all();
  while (take_piece(0)) {
  }
  const auto is_done = [&] {
    return done_.load(std::memory_order_acquire) == static_cast<std::uint32_t>(pieces);
  };
  while (!look_for(is_done)) std::this_thread::yield();
}

bool ThreadPool::take_piece(unsigned thread) {
  std::uint64_t ticket = ticket_.load(std::memory_order_acquire);
  for (;;) {
    const auto number = static_cast<std::uint32_t>(ticket);
    const std::uint32_t pieces = pieces_.load(std::memory_order_relaxed);
    const Function function = function_.load(std::memory_order_relaxed);
    void* context = context_.load(std::memory_order_relaxed);
    const std::int64_t items = items_.load(std::memory_order_relaxed);
    const std::int64_t piece = piece_.load(std::memory_order_relaxed);
    if (number >= pieces) return false;
    if (!ticket_.compare_exchange_weak(ticket, ticket + 1, std::memory_order_acq_rel,
                                       std::memory_order_acquire))
      continue;
    const std::int64_t begin = number * piece;
    function(context, begin, std::min(begin + piece, items), thread);
    done_.fetch_add(1, std::memory_order_release);
    return true;
  }
}

void ThreadPool::work(unsigned thread) {
  std::uint32_t seen = wake_.load(std::memory_order_acquire);
  while (!stopped_.load(std::memory_order_acquire)) {
    while (take_piece(thread)) {
    }
    if (!look_for([&] { return wake_.load(std::memory_order_acquire) != seen; })) {
      sleeping_.fetch_add(1, std::memory_order_seq_cst);
      wake_.wait(seen, std::memory_order_seq_cst);
      sleeping_.fetch_sub(1, std::memory_order_seq_cst);
    }
    seen = wake_.load(std::memory_order_acquire);
  }
}
