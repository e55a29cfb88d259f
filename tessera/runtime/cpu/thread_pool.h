// One pool of threads that live as long as the device. A thread without work looks for some for a short
// while, then sleeps; nobody waits for a thread that has no work.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

#include "tessera/runtime/cpu/processor_place.h"

namespace tessera::runtime::cpu {

/// Thread-safe: while one caller's work is running, others do theirs alone.
class ThreadPool {
 public:
  /// `threads` with the caller; 0: TESSERA_THREADS, or as many as the machine has.
  explicit ThreadPool(unsigned threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// Threads that may run work, the caller among them.
  [[nodiscard]] unsigned size() const { return static_cast<unsigned>(workers_.size()) + 1; }

  /// Calls `work(begin, end, thread)` for pieces of 0 … items-1 of at most `piece` items, and returns when
  /// all are done. `thread` is below size() and distinct for pieces of this call that run at the same time.
  /// `work` does not throw.
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

  void run_pieces(std::int64_t items, std::int64_t piece, Function function, void* context);
  void work(unsigned thread);
  bool take_piece(unsigned thread);

  std::mutex busy_;
  // The job at hand. It is written while no piece of it can be taken, and read before one is taken: taking
  // succeeds only if the job is still the same.
  std::atomic<Function> function_{nullptr};
  std::atomic<void*> context_{nullptr};
  std::atomic<std::int64_t> items_{0};
  std::atomic<std::int64_t> piece_{1};
  std::atomic<std::uint32_t> pieces_{0};
  std::atomic<std::uint64_t> ticket_{0};  ///< number of the job, and of the next piece below
  std::atomic<std::uint32_t> done_{0};
  std::atomic<std::uint32_t> wake_{0};
  std::atomic<std::uint32_t> sleeping_{0};
  std::atomic<bool> stopped_{false};
  std::vector<std::thread> workers_;
  ProcessorPlace place_;  ///< guarded by busy_
};

}  // namespace tessera::runtime::cpu
