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
#include "tessera/engine/size_rules.h"
#include "tessera/runtime/device.h"
#include "tessera/runtime/launch_update.h"

namespace tessera::engine {

/// How much of a plan had to change for an evaluation; the cheapest that is right.
enum class Tier : std::uint8_t {
  none,       ///< launched as it was
  hot,        ///< numbers changed
  warm,       ///< buffers or sizes changed
  recapture,  ///< a captured library call was captured again
  code,       ///< a kernel was built anew
  cold,       ///< the plan was made for this evaluation
  streamed,   ///< no plan: op by op
};
inline constexpr std::size_t tier_count = 7;
[[nodiscard]] std::string_view to_string(Tier tier);

/// How far an input that is part of a stored tensor begins behind it.
struct InputOffset {
  /// One position: `stride * position` elements, counted from the end of the axis if it is negative.
  struct Term {
    std::uint32_t position = 0;  ///< of the key
    std::int64_t stride = 0, size = 0;
  };
  std::vector<Term> terms;
  std::int64_t elements = 0;  ///< at the last launch
};

/// An executable with what its last launch was given, and the memory its outputs come from.
struct PlanInstance {
  std::unique_ptr<runtime::Executable> executable;
  bool is_prepared = false;          ///< for `sizes`
  std::vector<std::int64_t> sizes;   ///< of the key, without positions; scalars have none
  std::vector<InputOffset> offsets;  ///< by input of the plan
  std::vector<std::byte*> inputs;
  std::vector<const runtime::Buffer*> buffers;  ///< of the inputs
  std::vector<std::uint64_t> parameters;
  std::vector<std::byte*> outputs;
  /// Per output buffer the memory used in turn: what nobody else holds any more is written again.
  std::vector<std::vector<Ref<runtime::Buffer>>> ring;
  // Of the executable, for its sizes: a launch must not walk over the steps.
  std::uint64_t kernels = 0, views = 0;             ///< steps that compute, steps that do not
  const runtime::HoldsLaunches* updates = nullptr;  ///< null: it does not say what it had to change
  std::string driven;                               ///< regions that the host drives, with reasons

  [[nodiscard]] bool is_prepared_for(const PlanKey& key) const;
};

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
