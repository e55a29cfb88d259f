#include "tessera/runtime/cuda/step_events.h"

#include <algorithm>
#include <functional>
#include <queue>

using namespace tessera;
using namespace tessera::runtime;
using namespace tessera::runtime::cuda;

namespace {

TimedStep::Clock::duration duration_of(double microseconds) {
  using Microseconds = std::chrono::duration<double, std::micro>;
  return std::chrono::duration_cast<TimedStep::Clock::duration>(Microseconds(microseconds));
}

}  // namespace

Result<StepEvents> StepEvents::create(const ContextRef& context, std::uint32_t step) {
  Event begin = TESSERA_TRY(Event::create(context));
  Event end = TESSERA_TRY(Event::create(context));
  return StepEvents{step, std::move(begin), std::move(end)};
}

/// The event passes a little later than the host's clock says, so that no step ends after the host saw it
/// end.
Result<EventOrigin> EventOrigin::create(const ContextRef& context, const Stream& stream) {
  Event event = TESSERA_TRY(Event::create(context));
  TESSERA_TRY(stream.wait());
  const auto at = TimedStep::Clock::now();
  TESSERA_TRY(event.record(stream));
  return EventOrigin(at, std::move(event));
}

Result<TimedStep> EventOrigin::time_of(const StepEvents& events) const {
  const double begin = TESSERA_TRY(events.begin.microseconds_since(event_));
  const double time = TESSERA_TRY(events.end.microseconds_since(events.begin));
  TimedStep out{.step = events.step, .begin = at_ + duration_of(begin)};
  out.end = out.begin + duration_of(time);
  return out;
}

void tessera::runtime::cuda::assign_lanes(std::span<TimedStep> steps) {
  std::stable_sort(steps.begin(), steps.end(),
                   [](const TimedStep& a, const TimedStep& b) { return a.begin < b.begin; });
  using Busy = std::pair<TimedStep::Clock::time_point, std::uint32_t>;
  std::priority_queue<Busy, std::vector<Busy>, std::greater<>> busy;  // until when, and which lane
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> free;
  std::uint32_t lanes = 0;
  for (TimedStep& step : steps) {
    for (; !busy.empty() && busy.top().first <= step.begin; busy.pop()) free.push(busy.top().second);
    if (free.empty()) free.push(lanes++);
    step.thread = free.top();
    free.pop();
    busy.emplace(step.end, step.thread);
  }
}

Result<std::unique_ptr<StreamClock>> StreamClock::create(ContextRef context,
                                                         std::shared_ptr<const Stream> stream) {
  const Current current = TESSERA_TRY(context->enter());
  EventOrigin origin = TESSERA_TRY(EventOrigin::create(context, *stream));
  return std::unique_ptr<StreamClock>(
      new StreamClock(std::move(context), std::move(stream), std::move(origin)));
}

Result<void> StreamClock::begin() {
  const Current current = TESSERA_TRY(context_->enter());
  if (!is_open_) steps_.push_back(TESSERA_TRY(StepEvents::create(context_, 0)));
  is_open_ = true;
  return steps_.back().begin.record(*stream_);
}

Result<void> StreamClock::end(std::uint32_t step) {
  const Current current = TESSERA_TRY(context_->enter());
  steps_.back().step = step;
  is_open_ = false;
  return steps_.back().end.record(*stream_);
}

Result<void> StreamClock::read(std::vector<TimedStep>& out) {
  const Current current = TESSERA_TRY(context_->enter());
  if (std::exchange(is_open_, false)) steps_.pop_back();
  TESSERA_TRY(stream_->wait());
  for (const StepEvents& step : steps_) out.push_back(TESSERA_TRY(origin_.time_of(step)));
  steps_.clear();
  return {};
}
