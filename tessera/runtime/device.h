// What a device can do. Each runtime implements it once.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "tessera/op/call_info.h"
#include "tessera/pattern/target.h"
#include "tessera/runtime/executable.h"
#include "tessera/runtime/memory_pool.h"

namespace tessera::runtime {

/// Thread-safe: several evaluations may use a device at once.
class Device {
 public:
  virtual ~Device() = default;

  /// "reference", "cpu", "cuda:0"
  [[nodiscard]] virtual std::string_view name() const = 0;

  /// Where the arrays of calls and launches must lie; null: in host memory.
  [[nodiscard]] virtual std::shared_ptr<MemorySpace> memory_space() { return nullptr; }

  /// Runs one call. Inputs may have any strides, results are contiguous, zero and do not overlap inputs.
  [[nodiscard]] virtual Result<void> run(const op::CallInfo& call, std::span<const op::Array> inputs,
                                         std::span<const op::Array> results) = 0;

  /// Waits until everything that was launched is done; an error of that work that nobody saw is here.
  [[nodiscard]] virtual Result<void> synchronize() { return {}; }

  /// Waits until launches are as fast as they get: for what is made better beside the program.
  virtual void settle() {}

  /// What the compiler may choose from when it makes plans for this device; without sources, single ops.
  [[nodiscard]] virtual const pattern::Target& target() const = 0;

  /// Makes a plan ready to run, with memory from `pool`.
  [[nodiscard]] virtual Result<std::unique_ptr<Executable>> load(plan::PlanRef plan,
                                                                 const std::shared_ptr<MemoryPool>& pool) = 0;
};

}  // namespace tessera::runtime
