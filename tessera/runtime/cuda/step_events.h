// When steps ran on the device: an event before and one behind each, brought to the host's clock.
#pragma once

#include <span>
#include <vector>

#include "tessera/runtime/cuda/context.h"
#include "tessera/runtime/step_clock.h"

namespace tessera::runtime::cuda {

/// The events around one step.
struct StepEvents {
  std::uint32_t step = 0;
  Event begin, end;

  [[nodiscard]] static Result<StepEvents> create(const ContextRef& context, std::uint32_t step);
};

/// Where both clocks met: a moment at which the device had nothing to do.
class EventOrigin {
 public:
  /// Waits for the stream. REQUIRES, as all below, that the context is current.
  [[nodiscard]] static Result<EventOrigin> create(const ContextRef& context, const Stream& stream);

  /// Both events were recorded after this was made, and have passed.
  [[nodiscard]] Result<TimedStep> time_of(const StepEvents& events) const;

 private:
  EventOrigin(TimedStep::Clock::time_point at, Event event) : at_(at), event_(std::move(event)) {}

  TimedStep::Clock::time_point at_;
  Event event_;
};

/// Orders steps by their beginnings. Those that overlap get different lanes, as few as can be: their
/// `thread`.
void assign_lanes(std::span<TimedStep> steps);

/// Of steps that are launched on a stream.
class StreamClock final : public StepClock {
 public:
  [[nodiscard]] static Result<std::unique_ptr<StreamClock>> create(ContextRef context,
                                                                   std::shared_ptr<const Stream> stream);

  [[nodiscard]] Result<void> begin() override;
  [[nodiscard]] Result<void> end(std::uint32_t step) override;
  [[nodiscard]] Result<void> read(std::vector<TimedStep>& out) override;

 private:
  StreamClock(ContextRef context, std::shared_ptr<const Stream> stream, EventOrigin origin)
      : context_(std::move(context)), stream_(std::move(stream)), origin_(std::move(origin)) {}

  ContextRef context_;
  std::shared_ptr<const Stream> stream_;
  EventOrigin origin_;
  std::vector<StepEvents> steps_;  ///< the last is open between begin() and end()
  bool is_open_ = false;
};

}  // namespace tessera::runtime::cuda
