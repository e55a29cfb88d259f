// A plan that the engine keeps: what it serves, and everything needed to run it again.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tessera/engine/lift.h"
#include "tessera/engine/outline.h"
#include "tessera/engine/plan_instance.h"
#include "tessera/engine/size_rules.h"

namespace tessera::engine {

/// Guarded by the engine's lock, but for what an instance taken out of `idle` holds.
struct PlanEntry {
  enum class State : std::uint8_t { compiling, ready, failed, demoted };

  std::vector<std::uint32_t> words;
  SizeRules rules;
  std::vector<LiftedInput> inputs;
  std::vector<LiftedParameter> parameters;
  std::vector<LiftedResult> results;
  Outline outline;
  State state = State::compiling;
  plan::PlanRef plan;
  std::string error;  ///< of one that failed
  /// The ops do not allow its sizes to change with those of its siblings: each has to earn a plan of its own.
  bool stands_alone = false;
  std::vector<std::unique_ptr<PlanInstance>> idle;
  std::uint64_t last_used = 0;
  std::uint64_t runs = 0;
  /// Sizes and positions it was made for; the first ones are those of the evaluation that made it.
  std::vector<std::vector<std::int64_t>> instances;
  /// Whether it pays: times on the first sizes.
  std::uint64_t streamed_ns = 0;  ///< op by op; 0 if not known
  std::uint64_t planned_ns = 0;   ///< the best so far
  std::uint32_t timed_runs = 0;
  /// A demoted plan gets another chance after so many evaluations.
  static constexpr std::uint32_t retry_after = 1000;
  std::uint32_t streamed_since = 0;

  [[nodiscard]] std::size_t bytes() const;
};
using PlanEntryRef = std::shared_ptr<PlanEntry>;

}  // namespace tessera::engine
