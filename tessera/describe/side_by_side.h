// Threads that run functions which do not wait for each other.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace tessera::description {

/// One run at a time.
class SideBySide {
 public:
  /// So many threads with the caller's, started when they are needed; 0: as many as there are processors.
  explicit SideBySide(std::uint32_t threads);
  SideBySide(const SideBySide&) = delete;
  SideBySide& operator=(const SideBySide&) = delete;
  ~SideBySide();

  [[nodiscard]] std::uint32_t threads() const { return threads_; }
  /// Calls `task` with each number below `count`, which is not 0, and returns when all are done. `task` does
  /// not throw.
  void run(std::size_t count, const std::function<void(std::size_t)>& task);

 private:
  void start(std::size_t helpers);
  void work();
  void take_all();

  std::uint32_t threads_;
  std::vector<std::thread> helpers_;
  std::mutex mutex_;
  /// The child of a fork must not destroy them: those of the parent wait for them still, as it seems.
  std::unique_ptr<std::condition_variable> begins_ = std::make_unique<std::condition_variable>(),
                                           ends_ = std::make_unique<std::condition_variable>();
  // The run at hand; numbers are taken without the mutex, which guards the rest.
  const std::function<void(std::size_t)>* task_ = nullptr;
  std::thread::id caller_;
  std::size_t count_ = 0;
  std::atomic<std::size_t> next_{0};
  std::size_t wanted_ = 0;   // helpers that have not begun
  std::size_t working_ = 0;  // those that are not done
  bool is_over_ = false;
};

/// The thread whose run() the calling one helps with; else the calling one.
[[nodiscard]] std::thread::id acting_thread();

}  // namespace tessera::description
