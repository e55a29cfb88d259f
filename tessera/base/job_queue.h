// One thread beside the program that does one job after the other. It starts with the first.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace tessera {

/// Thread-safe.
class JobQueue {
 public:
  using Job = std::function<void()>;

  JobQueue() = default;
  ~JobQueue() { stop(); }

  /// Runs `job` later. A job does not throw. False if the thread could not be started or is stopped.
  [[nodiscard]] bool push(Job job);
  /// Jobs that have not begun.
  [[nodiscard]] std::size_t waiting() const;
  /// Waits until nothing is left to do.
  void wait();
  /// Finishes the job at hand, drops the others, takes no more.
  void stop();

 private:
  void work();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  bool busy_ = false;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace tessera
