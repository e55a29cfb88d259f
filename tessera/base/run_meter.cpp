#include "tessera/base/run_meter.h"

#include "tessera/base/text.h"

using namespace tessera;

thread_local constinit RunMeter* RunMeter::current_ = nullptr;

bool RunMeter::is_late() const {
  const std::chrono::duration<double> passed = Clock::now() - begin_;
  return passed.count() > limits_.seconds;
}

Result<void> RunMeter::check_time() const {
  if (!is_late()) return {};
  return Error(ErrorCode::limit, cat("the program runs for more than ", limits_.seconds, " seconds"));
}

Result<void> RunMeter::take_work(double multiply_adds) {
  const double taken = work_.fetch_add(multiply_adds, std::memory_order_relaxed) + multiply_adds;
  if (taken <= limits_.work) return {};
  return Error(ErrorCode::limit,
               cat("the work is more than the ", limits_.work, " multiply-adds that are allowed"));
}

bool RunMeter::has_ended(const Error& error) const {
  return error.code() == ErrorCode::limit && (is_late() || work_.load() > limits_.work);
}

void RunMeter::throw_late() const { throw Exception(check_time().error()); }
