#include "tessera/runtime/cpu/thread_pool.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <system_error>
#include <utility>

#include "tessera/base/environment.h"
#include "tessera/base/forked_child.h"
#include "tessera/base/text.h"

using namespace tessera::runtime::cpu;

namespace {

/// How long a thread looks for work before it sleeps, and how often between two looks at the clock. Waking
/// one that sleeps takes 5 to 50 microseconds, what lies between two evaluations of a loop mostly less than
/// this.
constexpr std::chrono::microseconds longest_look{500};
constexpr int looks_at_once = 64;

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

tessera::Result<unsigned> tessera::runtime::cpu::parse_thread_count(std::string_view text) {
  unsigned count = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  const bool is_whole = error == std::errc() && stop == text.data() + text.size();
  if (is_whole && count >= 1 && count <= most_threads) return count;
  return Error(ErrorCode::invalid_argument,
               cat("'", printable(text), "' is no number of threads, which is a whole number from 1 to ",
                   most_threads));
}

unsigned tessera::runtime::cpu::thread_count(unsigned asked) {
  if (asked != 0) return std::min(asked, most_threads);
  const unsigned of_machine = std::clamp(std::thread::hardware_concurrency(), 1U, most_threads);
  const char* text = environment("TESSERA_THREADS");
  if (text == nullptr) return of_machine;
  const auto given = parse_thread_count(text);
  if (given) return *given;
  static std::atomic<bool> is_said{false};
  if (!is_said.exchange(true))
    std::fprintf(stderr, "tessera: TESSERA_THREADS: %s; there are %u\n", given.error().message().c_str(),
                 of_machine);
  return of_machine;
}

ThreadPool::ThreadPool(unsigned threads) : slots_(thread_count(threads)) {
  const auto count = static_cast<unsigned>(slots_.size());
  workers_.reserve(count);
  note_forks();
  try {
    for (unsigned i = 1; i < count; ++i) workers_.emplace_back([this, i] { work(i); });
  } catch (const std::system_error&) {
    // Fewer threads than wanted: slower, not wrong.
  }
}

ThreadPool::~ThreadPool() {
  if (is_forked_child()) {
    new (&workers_) std::vector<std::thread>;  // they are not there, and cannot be waited for
    return;
  }
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
  if (!lock || workers_.empty() || pieces == 1 || is_forked_child()) {
    run_alone(items, piece, function, context);
    return;
  }
  place_.leave_to_caller(workers_);
  publish(items, piece, pieces, function, context);
  take_pieces(0);
  wait_until_done(static_cast<std::uint32_t>(pieces));
  if (has_failed_.load(std::memory_order_relaxed)) throw_failure();
}

/// In one go, or piece by piece where a limit is looked at.
void ThreadPool::run_alone(std::int64_t items, std::int64_t piece, Function function, void* context) {
  if (RunMeter::current() == nullptr) return function(context, 0, items, 0);
  for (std::int64_t begin = 0; begin < items; begin += piece) {
    RunMeter::check_or_throw();
    function(context, begin, std::min(begin + piece, items), 0);
  }
}

/// Who adds pieces looks whether the caller sleeps after it has added them, the caller whether all are done
/// after it has said that it sleeps: one of them sees the other.
void ThreadPool::wait_until_done(std::uint32_t pieces) {
  if (look_for([&] { return done_.load(std::memory_order_acquire) == pieces; })) return;
  caller_sleeps_.store(true, std::memory_order_seq_cst);
  for (std::uint32_t done = 0; (done = done_.load(std::memory_order_seq_cst)) != pieces;) done_.wait(done);
  caller_sleeps_.store(false, std::memory_order_relaxed);
}

void ThreadPool::add_done(std::uint32_t pieces) {
  done_.fetch_add(pieces, std::memory_order_seq_cst);
  if (caller_sleeps_.load(std::memory_order_seq_cst)) done_.notify_one();
}

void ThreadPool::fail() noexcept {
  if (!has_failed_.exchange(true, std::memory_order_relaxed)) failure_ = std::current_exception();
}

void ThreadPool::throw_failure() {
  has_failed_.store(false, std::memory_order_relaxed);
  std::rethrow_exception(std::exchange(failure_, nullptr));
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
    slot.meter.store(RunMeter::current(), std::memory_order_relaxed);
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
    if (taken > 0) add_done(taken);
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
    RunMeter* const meter = from.meter.load(std::memory_order_relaxed);
    const std::uint32_t first = first_of(share), end = end_of(share);
    if (first >= end) return false;
    const bool is_own = owner == thread;
    const Share rest =
        is_own ? share_of(job_of(share), first + 1, end) : share_of(job_of(share), first, end - 1);
    if (!from.share.compare_exchange_weak(share, rest, std::memory_order_acq_rel, std::memory_order_acquire))
      continue;
    const std::int64_t begin = (is_own ? first : end - 1) * piece;
    if (has_failed_.load(std::memory_order_relaxed)) return true;
    const RunMeter::Scope scope(meter);
    try {
      RunMeter::check_or_throw();
      function(context, begin, std::min(begin + piece, items), thread);
    } catch (...) {
      fail();
    }
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
