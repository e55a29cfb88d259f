// What is made once and then known to everybody: a library that is opened, a device that is found.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "tessera/base/result.h"

namespace tessera {

/// Thread-safe. What was made stays, and so does an error, but for want of memory: with code `memory`, or as
/// an exception, it goes to who asked, and the next one tries again. (A static that was initialised with such
/// an error would keep it, and std::call_once is not safe everywhere when it throws.)
template <class T>
class Once {
 public:
  template <class Make>
  Result<T> get(const Make& make) {
    if (const Result<T>* known = known_.load(std::memory_order_acquire)) return *known;
    const std::lock_guard lock(mutex_);
    if (made_ != nullptr) return *made_;
    Result<T> made = make();
    if (!made && made.error().code() == ErrorCode::memory) return made;
    made_ = std::make_unique<const Result<T>>(std::move(made));
    known_.store(made_.get(), std::memory_order_release);
    return *made_;
  }

 private:
  std::mutex mutex_;
  std::unique_ptr<const Result<T>> made_;
  std::atomic<const Result<T>*> known_{nullptr};
};

}  // namespace tessera
