#include "tessera/describe/side_by_side.h"

#include <algorithm>
#include <new>
#include <system_error>

#include "tessera/base/forked_child.h"

using namespace tessera;
using namespace tessera::description;

namespace {

thread_local std::thread::id helped_thread;

}  // namespace

std::thread::id tessera::description::acting_thread() {
  return helped_thread == std::thread::id() ? std::this_thread::get_id() : helped_thread;
}

SideBySide::SideBySide(std::uint32_t threads)
    : threads_(threads != 0 ? threads : std::max(1U, std::thread::hardware_concurrency())) {}

SideBySide::~SideBySide() {
  if (is_forked_child()) {
    new (&helpers_) std::vector<std::thread>;  // they are not there, and cannot be waited for
    static_cast<void>(begins_.release());
    static_cast<void>(ends_.release());
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  begins_->notify_all();
  for (std::thread& helper : helpers_) helper.join();
}

/// With fewer if the system has no more.
void SideBySide::start(std::size_t helpers) {
  note_forks();
  try {
    while (helpers_.size() < helpers) helpers_.emplace_back([this] { work(); });
  } catch (const std::system_error&) {
  }
}

void SideBySide::run(std::size_t count, const std::function<void(std::size_t)>& task) {
  if (is_forked_child()) {
    for (std::size_t i = 0; i < count; ++i) task(i);
    return;
  }
  const std::size_t helpers = std::min<std::size_t>(threads_, count) - 1;
  start(helpers);
  {
    const std::lock_guard lock(mutex_);
    task_ = &task;
    caller_ = acting_thread();
    count_ = count;
    next_ = 0;
    wanted_ = working_ = std::min(helpers, helpers_.size());
  }
  begins_->notify_all();
  take_all();
  std::unique_lock lock(mutex_);
  ends_->wait(lock, [&] { return working_ == 0; });
}

void SideBySide::take_all() {
  for (std::size_t i = next_++; i < count_; i = next_++) (*task_)(i);
}

void SideBySide::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    begins_->wait(lock, [&] { return is_over_ || wanted_ != 0; });
    if (is_over_) return;
    --wanted_;
    helped_thread = caller_;
    lock.unlock();
    take_all();
    lock.lock();
    if (--working_ == 0) ends_->notify_one();
  }
}
