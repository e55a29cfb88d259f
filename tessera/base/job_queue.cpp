#include "tessera/base/job_queue.h"

#include <system_error>

using namespace tessera;

bool JobQueue::push(Job job) {
  const std::lock_guard lock(mutex_);
  if (stopped_) return false;
  if (!thread_.joinable()) {
    try {
      thread_ = std::thread([this] { work(); });
    } catch (const std::system_error&) {
      return false;
    }
  }
  jobs_.push_back(std::move(job));
  changed_.notify_all();
  return true;
}

std::size_t JobQueue::waiting() const {
  const std::lock_guard lock(mutex_);
  return jobs_.size();
}

void JobQueue::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return (jobs_.empty() && !busy_) || stopped_; });
}

void JobQueue::stop() {
  std::deque<Job> dropped;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    dropped.swap(jobs_);
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void JobQueue::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stopped_ || !jobs_.empty(); });
    if (stopped_) return;
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    busy_ = true;
    lock.unlock();
    job();
    job = nullptr;
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}
