// What importing and running a model has taken of its limits so far. Its time is that of the thread's run
// (base/run_meter.h): calls look at it too.
#pragma once

#include "tessera/base/run_meter.h"
#include "tessera/onnx/model.h"
#include "tessera/op/builder.h"

namespace tessera::onnx {

/// Lives on the stack of the thread that walks the model.
class Budget {
 public:
  explicit Budget(const Limits& limits) : limits_(limits), meter_({.seconds = limits.seconds}) {}

  [[nodiscard]] const Limits& limits() const { return limits_; }
  /// One node more. Looks at the clock as well.
  [[nodiscard]] Result<void> take_step();
  /// One call: the sizes of its results, and its work where all sizes are numbers. Asked before it is done.
  [[nodiscard]] Result<void> take_call(const op::Card& card, std::span<const op::Value> inputs,
                                       const op::Attributes& attributes, const op::ValueTypes& results);

 private:
  Limits limits_;
  RunMeter meter_;
  RunMeter::Scope scope_{&meter_};
  std::int64_t steps_ = 0;
  double work_ = 0;
};

}  // namespace tessera::onnx
