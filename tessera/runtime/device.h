// What a device can do. Each runtime implements it once.
#pragma once

#include <future>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/text.h"
#include "tessera/ir/function.h"
#include "tessera/op/call_info.h"
#include "tessera/pattern/target.h"
#include "tessera/runtime/executable.h"
#include "tessera/runtime/memory_pool.h"
#include "tessera/runtime/step_clock.h"
#include "tessera/runtime/step_graph.h"

namespace tessera::runtime {

/// Thread-safe: several evaluations may use a device at once.
class Device {
 public:
  virtual ~Device() = default;

  /// "reference", "cpu", "cuda:0"
  [[nodiscard]] virtual std::string_view name() const = 0;

  /// What those who compare results should know; empty: nothing.
  [[nodiscard]] virtual std::string_view remark() const { return {}; }

  /// What it computes with: threads, libraries and their versions, in words. May open libraries.
  [[nodiscard]] virtual std::string found() const { return {}; }
  /// What it does without, and why, as far as it is known by now; empty: nothing.
  [[nodiscard]] virtual std::vector<std::string> lacks() const { return {}; }

  /// Where the arrays of calls and launches must lie; null: in host memory.
  [[nodiscard]] virtual std::shared_ptr<MemorySpace> memory_space() { return nullptr; }

  /// Whether run() takes results that hold anything; else they are zero.
  [[nodiscard]] virtual bool takes_any_results() const { return false; }
  /// Runs one call. Inputs may have any strides, results are contiguous, zero and do not overlap inputs.
  [[nodiscard]] virtual Result<void> run(const op::CallInfo& call, std::span<const op::Array> inputs,
                                         std::span<const op::Array> results) = 0;

  /// Waits until everything that was launched is done; an error of that work that nobody saw is here.
  [[nodiscard]] virtual Result<void> synchronize() { return {}; }

  /// Notes when calls run that this thread makes; null where they are done when run() returns.
  [[nodiscard]] virtual Result<std::unique_ptr<StepClock>> step_clock() {
    return std::unique_ptr<StepClock>();
  }

  /// Waits until launches are as fast as they get: for what is made better beside the program.
  virtual void settle() {}

  /// What the compiler may choose from when it makes plans for this device; without sources, single ops.
  [[nodiscard]] virtual const pattern::Target& target() const = 0;

  /// A hint that a plan of this function will be loaded: what the device does once and will need for it may
  /// begin beside the compiler. What comes back is held while the function is compiled; its end waits.
  [[nodiscard]] virtual std::future<void> expect(const ir::Function& /*function*/) { return {}; }

  /// Makes a plan ready to run, with memory from `pool`.
  [[nodiscard]] virtual Result<std::unique_ptr<Executable>> load(plan::PlanRef plan,
                                                                 const std::shared_ptr<MemoryPool>& pool) = 0;

  /// Where values lie when a plan runs with these sizes and inputs of these layouts: what the binding of its
  /// executable is, without taking the memory.
  [[nodiscard]] virtual Result<plan::Binding> plan_memory(const plan::PlanRef& plan,
                                                          std::span<const std::int64_t> sizes,
                                                          std::span<const op::Layout> inputs) {
    return plan::bind(*plan, sizes, inputs);
  }

  /// Something that holds steps, none at first; errors of steps go through `blame`. Fails with code
  /// `unsupported` where a device makes calls one by one.
  [[nodiscard]] virtual Result<std::unique_ptr<StepGraph>> step_graph(StepBlame /*blame*/) {
    return Error(ErrorCode::unsupported, cat("device '", name(), "' makes calls one by one"));
  }
};

}  // namespace tessera::runtime
