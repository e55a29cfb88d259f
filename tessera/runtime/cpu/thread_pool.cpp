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

constexpr std::int64_t most_pieces = 0xffff;

std::uint32_t job_of(std::uint64_t share) { return static_cast<std::uint32_t>(share >> 32); }
std::uint32_t first_of(std::uint64_t share) { return static_cast<std::uint32_t>(share >> 16) & 0xffff; }
std::uint32_t end_of(std::uint64_t share) { return static_cast<std::uint32_t>(share) & 0xffff; }
std::uint64_t share_of(std::uint32_t job, std::int64_t first, std::int64_t end) {
  return std::uint64_t{job} << 32 | static_cast<std::uint64_t>(first) << 16 | static_cast<std::uint64_t>(end);
}

}  // namespace

unsigned tessera::runtime::cpu::thread_count(unsigned asked) {
  if (asked != 0) return std::min(asked, most_threads);
  unsigned from_environment = 0;
  if (const char* text = std::getenv("TESSERA_THREADS"))
    std::from_chars(text, text + std::strlen(text), from_environment);
  if (from_environment == 0) from_environment = std::max(1U, std::thread::hardware_concurrency());
  return std::min(from_environment, most_threads);
}

ThreadPool::ThreadPool(unsigned threads) : slots_(thread_count(threads)) {
  const auto count = static_cast<unsigned>(slots_.size());
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
  piece = std::max(piece, (items + most_pieces - 1) / most_pieces);
  const std::int64_t pieces = (items + piece - 1) / piece;
  std::unique_lock lock(busy_, std::try_to_lock);
  if (!lock || workers_.empty() || pieces == 1) {
    function(context, 0, items, 0);
    return;
  }
  place_.leave_to_caller(workers_);
  publish(items, piece, pieces, function, context);
  take_pieces(0);
  const auto is_done = [&] {
    return done_.load(std::memory_order_acquire) == static_cast<std::uint32_t>(pieces);
  };
  while (!look_for(is_done)) std::this_thread::yield();
}

void ThreadPool::publish(std::int64_t items, std::int64_t piece, std::int64_t pieces, Function function,
                         void* context) {
  done_.store(0, std::memory_order_relaxed);
  const std::uint32_t job = wake_.load(std::memory_order_relaxed) + 1;
  const std::int64_t threads = size();
  for (std::int64_t t = 0; t < threads; ++t) {
    Slot& slot = slots_[static_cast<std::size_t>(t)];
    slot.function.store(function, std::memory_order_relaxed);
    slot.context.store(context, std::memory_order_relaxed);
    slot.items.store(items, std::memory_order_relaxed);
    slot.piece.store(piece, std::memory_order_relaxed);
    slot.share.store(share_of(job, pieces * t / threads, pieces * (t + 1) / threads),
                     std::memory_order_release);
  }
  wake_.store(job, std::memory_order_seq_cst);
  if (sleeping_.load(std::memory_order_seq_cst) > 0) wake_.notify_all();
}

/// Pieces are counted where they are run: a count that all write to goes from cache to cache. The job is not
/// done, and no other can be there, before they are added.
void ThreadPool::take_pieces(unsigned thread) {
  const auto threads = static_cast<unsigned>(slots_.size());
  for (unsigned i = 0; i < threads; ++i) {
    std::uint32_t taken = 0;
    while (take_piece((thread + i) % threads, thread)) ++taken;
    if (taken > 0) done_.fetch_add(taken, std::memory_order_release);
  }
}

bool ThreadPool::take_piece(unsigned owner, unsigned thread) {
  Slot& from = slots_[owner];
  Share share = from.share.load(std::memory_order_acquire);
  for (;;) {
    const Function function = from.function.load(std::memory_order_relaxed);
    void* context = from.context.load(std::memory_order_relaxed);
    const std::int64_t items = from.items.load(std::memory_order_relaxed);
    const std::int64_t piece = from.piece.load(std::memory_order_relaxed);
    const std::uint32_t first = first_of(share), end = end_of(share);
    if (first >= end) return false;
    const bool is_own = owner == thread;
    const Share rest =
        is_own ? share_of(job_of(share), first + 1, end) : share_of(job_of(share), first, end - 1);
    if (!from.share.compare_exchange_weak(share, rest, std::memory_order_acq_rel, std::memory_order_acquire))
      continue;
    const std::int64_t begin = (is_own ? first : end - 1) * piece;
    function(context, begin, std::min(begin + piece, items), thread);
    return true;
  }
}

void ThreadPool::work(unsigned thread) {
  std::uint32_t seen = 0;
  while (!stopped_.load(std::memory_order_acquire)) {
    if (!look_for([&] { return wake_.load(std::memory_order_acquire) != seen; })) {
      sleeping_.fetch_add(1, std::memory_order_seq_cst);
      wake_.wait(seen, std::memory_order_seq_cst);
      sleeping_.fetch_sub(1, std::memory_order_seq_cst);
    }
    seen = wake_.load(std::memory_order_acquire);
    __builtin_prefetch(&slots_[thread], 1);  // it is written to next
    take_pieces(thread);
  }
}
