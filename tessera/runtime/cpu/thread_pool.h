// One pool of threads that live as long as the device. A thread without work looks for some for a short
// while, then sleeps, and so does a caller that waits for the others; nobody waits for a thread that has no
// work.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <string_view>
#include <thread>
#include <type_traits>
#include <vector>

#include "tessera/base/result.h"
#include "tessera/base/run_meter.h"
#include "tessera/runtime/cpu/processor_place.h"

namespace tessera::runtime::cpu {

inline constexpr unsigned most_threads = 256;

/// A number of threads as people write it: a whole number from 1 to most_threads.
[[nodiscard]] Result<unsigned> parse_thread_count(std::string_view text);

/// How many threads a pool has: `asked`, or if 0: TESSERA_THREADS, or as many as the machine has. What
/// TESSERA_THREADS says wrong is said once on standard error.
[[nodiscard]] unsigned thread_count(unsigned asked = 0);

/// Thread-safe: while one caller's work is running, others do theirs alone.
class ThreadPool {
 public:
  /// `threads` (thread_count) with the caller.
  explicit ThreadPool(unsigned threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// Threads that may run work, the caller among them.
  [[nodiscard]] unsigned size() const { return static_cast<unsigned>(workers_.size()) + 1; }

  /// Calls `work(begin, end, thread)` for pieces of 0 … items-1 of at most `piece` items (of more if there
  /// were more than 65,535 of them), and returns when all are done. `thread` is below size() and distinct for
  /// pieces of this call that run at the same time. Every thread begins with neighbouring pieces, the same
  /// in each run of as many, so that it finds its data in its cache; then it helps the others. If `work`
  /// throws, pieces that nobody has begun are left out, and the first exception is thrown here when no thread
  /// runs any more. The limits of the caller's run (base/run_meter.h) hold for all threads; at its end the
  /// rest is left out and its error is thrown.
  template <class F>
  void run(std::int64_t items, std::int64_t piece, F&& work) {
    using Work = std::remove_reference_t<F>;
    run_pieces(
        items, piece,
        [](void* context, std::int64_t begin, std::int64_t end, unsigned thread) {
          (*static_cast<Work*>(context))(begin, end, thread);
        },
        const_cast<void*>(static_cast<const void*>(&work)));
  }

 private:
  using Function = void (*)(void* context, std::int64_t begin, std::int64_t end, unsigned thread);

  /// The pieces of a thread that nobody has taken: the number of the job, the first one and the one behind
  /// the last. The thread takes the first, others the last.
  using Share = std::uint64_t;

  static void run_alone(std::int64_t items, std::int64_t piece, Function function, void* context);
  void run_pieces(std::int64_t items, std::int64_t piece, Function function, void* context);
  void publish(std::int64_t items, std::int64_t piece, std::int64_t pieces, Function function, void* context);
  void work(unsigned thread);
  /// Runs pieces until none is left.
  void take_pieces(unsigned thread);
  bool take_piece(unsigned owner, unsigned thread);
  void add_done(std::uint32_t pieces);
  void wait_until_done(std::uint32_t pieces);
  /// Takes the exception being handled as that of the job, if it is the first.
  void fail() noexcept;
  void throw_failure();

  /// What a thread needs to know of the job at hand, in one cache line, which nobody else writes to but who
  /// takes its pieces. The job is written while no piece of it can be taken, and read before one is taken:
  /// taking succeeds only if it is still the same.
  struct alignas(64) Slot {
    std::atomic<Share> share{0};
    std::atomic<Function> function{nullptr};
    std::atomic<void*> context{nullptr};
    std::atomic<std::int64_t> items{0};
    std::atomic<std::int64_t> piece{1};
    std::atomic<RunMeter*> meter{nullptr};
  };

  std::mutex busy_;
  // What threads look at all the time has a cache line of its own.
  alignas(64) std::atomic<std::uint32_t> wake_{0};  ///< the number of the job
  alignas(64) std::atomic<std::uint32_t> sleeping_{0};
  std::atomic<bool> stopped_{false};
  alignas(64) std::atomic<std::uint32_t> done_{0};  ///< pieces of the job
  std::atomic<bool> caller_sleeps_{false};          ///< until they are done
  alignas(64) std::vector<Slot> slots_;             ///< by thread
  std::atomic<bool> has_failed_{false};             ///< the job
  std::exception_ptr failure_;                      ///< by whom has_failed_ was set
  std::vector<std::thread> workers_;
  ProcessorPlace place_;  ///< guarded by busy_
};

}  // namespace tessera::runtime::cpu
