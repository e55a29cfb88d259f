// What an evaluation did, and why.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/engine/plan_entry.h"

namespace tessera::engine {

/// One component of an evaluation, or one part of a program that was run.
struct ComponentReport {
  std::string program;  ///< the model or the plan in a file that was run; empty: what was recorded
  std::size_t ops = 0;
  Tier tier = Tier::streamed;
  std::string cause;  ///< what changed, or why there is no plan
  std::string
      driven;  ///< regions of its plan that the host drives instead of the device, each with the reason
  std::uint64_t nanoseconds = 0;
  std::uint64_t kernels = 0;
  std::uint64_t views = 0;
  Outline missed;  ///< of one without a plan, to be compared with the nearest there is

  /// As it was made; the memory of its texts is used again.
  void clear();
  /// What std::swap does, without touching texts that are empty on both sides.
  void swap(ComponentReport& other) noexcept;
};

struct EvaluationReport {
  std::uint64_t number = 0;  ///< evaluations are counted from 1
  std::vector<ComponentReport> components;
};

/// One line: "evaluation 12: plan hot 5 ops 3.1 us (1 number) | streamed 2 ops 8.0 us (seen 1 of 3 times)"
[[nodiscard]] std::string to_line(const EvaluationReport& report);

}  // namespace tessera::engine
