#include "tessera/base/job_queue.h"

#include <new>
#include <system_error>

#include "tessera/base/forked_child.h"

using namespace tessera;

bool JobQueue::push(Job job) {
  if (is_forked_child()) return false;
  const std::lock_guard lock(mutex_);
  if (stopped_) return false;
  if (!thread_.joinable()) {
    note_forks();
    try {
      thread_ = std::thread([this] { work(); });
    } catch (const std::system_error&) {
      return false;
    }
  }
  jobs_.push_back(std::move(job));
  changed_->notify_all();
  return true;
}

std::size_t JobQueue::waiting() const {
  if (is_forked_child()) return 0;
  const std::lock_guard lock(mutex_);
  return jobs_.size();
}

void JobQueue::wait() {
  if (is_forked_child()) return;
  std::unique_lock lock(mutex_);
  changed_->wait(lock, [&] { return (jobs_.empty() && !busy_) || stopped_; });
}

void JobQueue::stop() {
  if (is_forked_child()) {
    new (&thread_) std::thread;  // it is not there, and cannot be waited for
    static_cast<void>(changed_.release());
    return;
  }
  std::deque<Job> dropped;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    dropped.swap(jobs_);
    changed_->notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void JobQueue::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_->wait(lock, [&] { return stopped_ || !jobs_.empty(); });
    if (stopped_) return;
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    busy_ = true;
    lock.unlock();
    job();
    job = nullptr;
    lock.lock();
    busy_ = false;
    changed_->notify_all();
  }
}
