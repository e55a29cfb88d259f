// What importing and running a model has taken of its limits so far.
#pragma once

#include <chrono>

#include "tessera/onnx/model.h"
#include "tessera/op/builder.h"

namespace tessera::onnx {

class Budget {
 public:
  explicit Budget(const Limits& limits) : limits_(limits), begin_(Clock::now()) {}

  [[nodiscard]] const Limits& limits() const { return limits_; }
  /// One node more. Looks at the clock as well.
  [[nodiscard]] Result<void> take_step();
  /// One call: the sizes of its results, and its work where all sizes are numbers. Asked before it is done.
  [[nodiscard]] Result<void> take_call(const op::Card& card, std::span<const op::Value> inputs,
                                       const op::Attributes& attributes, const op::ValueTypes& results);

 private:
  using Clock = std::chrono::steady_clock;

  Limits limits_;
  Clock::time_point begin_;
  std::int64_t steps_ = 0;
  double work_ = 0;
};

}  // namespace tessera::onnx
