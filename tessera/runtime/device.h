// What a device can do. Each runtime implements it once.
#pragma once

#include <span>
#include <string_view>

#include "tessera/op/call_info.h"

namespace tessera::runtime {

/// Thread-safe: several evaluations may use a device at once.
class Device {
 public:
  virtual ~Device() = default;

  /// "reference", "cpu", "cuda:0"
  [[nodiscard]] virtual std::string_view name() const = 0;

  /// Runs one call. Inputs may have any strides, results are contiguous and do not overlap inputs.
  [[nodiscard]] virtual Result<void> run(const op::CallInfo& call, std::span<const op::Array> inputs,
                                         std::span<const op::Array> results) = 0;
};

}  // namespace tessera::runtime
