// Runs a component op by op, as soon as its operands are there: nothing is compiled.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "tessera/engine/needed.h"
#include "tessera/runtime/device.h"

namespace tessera::engine {

/// A value that an evaluation has computed and will store.
struct Computed {
  Node* node = nullptr;
  std::unique_ptr<Storage> value;
  std::vector<Storage> results;  ///< of a call with several: all of them
};

struct RunFigures {
  std::uint64_t kernels = 0;
  std::uint64_t views = 0;
};

class StreamedRun {
 public:
  StreamedRun(runtime::Device& device, runtime::MemoryPool& pool, const Needed& needed)
      : device_(device), pool_(pool), needed_(needed) {}

  /// Runs the steps (none means all) and appends what is kept. Errors carry the caller's line.
  /// `times`, if given, gets when each step ran that computed something.
  [[nodiscard]] Result<RunFigures> run(std::span<const std::uint32_t> steps, std::vector<Computed>& out,
                                       std::vector<runtime::TimedStep>* times = nullptr);

 private:
  using Results = std::vector<Storage>;

  [[nodiscard]] Result<void> run_step(std::uint32_t step);
  [[nodiscard]] Result<void> run_timed(std::uint32_t step, std::vector<runtime::TimedStep>& times);
  [[nodiscard]] Result<void> run_call(std::uint32_t step);
  [[nodiscard]] Result<void> run_function(std::uint32_t step);
  [[nodiscard]] Result<void> allocate_results(std::uint32_t step, std::vector<op::Array>& arrays);
  [[nodiscard]] const Storage& operand(std::uint32_t step, std::size_t i) const;
  void used(std::uint32_t step);
  void keep(std::uint32_t step, std::vector<Computed>& out);

  runtime::Device& device_;
  runtime::MemoryPool& pool_;
  const Needed& needed_;
  std::vector<Results> results_;          ///< by step
  std::vector<std::uint32_t> uses_left_;  ///< by step
  RunFigures figures_;
  std::unique_ptr<runtime::StepClock> clock_;  ///< of a run whose steps are timed by the device
};

}  // namespace tessera::engine
