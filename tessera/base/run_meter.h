// What a run may take of time and work, and has taken so far. Whoever starts a run opens a scope; whoever
// repeats something or takes long asks the meter of its thread. Threads that help a run take part in its
// scope.
//
//   RunMeter meter({.seconds = 2});
//   const RunMeter::Scope scope(&meter);
//   …
//   TESSERA_TRY(RunMeter::check());  // in a loop; nothing where no scope is open
#pragma once

#include <atomic>
#include <chrono>
#include <limits>

#include "tessera/base/result.h"

namespace tessera {

/// Thread-safe.
class RunMeter {
 public:
  struct Limits {
    double seconds = std::numeric_limits<double>::infinity();  ///< from the construction on
    double work = std::numeric_limits<double>::infinity();     ///< multiply-adds, about
  };
  explicit RunMeter(Limits limits) : limits_(limits), begin_(Clock::now()) {}
  RunMeter(const RunMeter&) = delete;
  RunMeter& operator=(const RunMeter&) = delete;

  /// Once true, always true.
  [[nodiscard]] bool is_late() const;
  [[nodiscard]] Result<void> check_time() const;
  /// Work that is about to be done. Fails if it is too much.
  [[nodiscard]] Result<void> take_work(double multiply_adds);
  /// Whether an error is one of this meter, or came after its end: a loop then says where it stopped.
  [[nodiscard]] bool has_ended(const Error& error) const;

  /// The meter of this thread; null if there is none.
  [[nodiscard]] static RunMeter* current() noexcept { return current_; }
  /// What check_time() of the current meter says; without one, no error.
  [[nodiscard]] static Result<void> check() {
    return current_ == nullptr ? Result<void>() : current_->check_time();
  }
  /// The same for code that has no Result to return: throws Exception.
  static void check_or_throw() {
    if (current_ != nullptr && current_->is_late()) current_->throw_late();
  }

  /// Makes a meter, or none, that of this thread; the one before comes back at its end.
  class Scope {
   public:
    explicit Scope(RunMeter* meter) noexcept : before_(current_) { current_ = meter; }
    ~Scope() { current_ = before_; }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    RunMeter* before_;
  };

 private:
  using Clock = std::chrono::steady_clock;
  [[noreturn]] void throw_late() const;

  static thread_local constinit RunMeter* current_;

  Limits limits_;
  Clock::time_point begin_;
  std::atomic<double> work_{0};
};

}  // namespace tessera
