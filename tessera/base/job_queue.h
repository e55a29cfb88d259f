// One thread beside the program that does one job after the other. It starts with the first. The child of a fork
// has no such thread: nothing is done there, nor waited for.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
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
  /// The child of a fork must not destroy it: those of the parent wait for it still, as it seems.
  std::unique_ptr<std::condition_variable> changed_ = std::make_unique<std::condition_variable>();
  std::deque<Job> jobs_;
  bool busy_ = false;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace tessera
