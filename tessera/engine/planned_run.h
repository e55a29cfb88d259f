// Runs a component by its plan: what changed since the last launch is patched, then it is launched.
#pragma once

#include <span>
#include <vector>

#include "tessera/engine/plan_entry.h"
#include "tessera/engine/streamed_run.h"

namespace tessera::engine {

struct PlannedOutcome {
  Tier tier = Tier::none;
  std::string cause;
  std::string driven;  ///< regions that the host drives, with reasons
  RunFigures figures;
};

struct LaunchOptions {
  std::vector<runtime::TimedStep>* times = nullptr;
  /// Whether the device may keep copies of inputs that stay as they are. With them it may round otherwise.
  bool keeps_copies = true;
};

/// `symbols` are the values of the entry's size symbols. Appends what is kept. `steps` empty means all.
/// `outcome` comes empty, with memory for its text.
[[nodiscard]] Result<void> run_planned(const PlanEntry& entry, PlanInstance& instance, const Needed& needed,
                                       std::span<const std::uint32_t> steps, const PlanKey& key,
                                       std::span<const std::int64_t> symbols, runtime::MemoryPool& pool,
                                       std::vector<Computed>& out, PlannedOutcome& outcome,
                                       const LaunchOptions& options);

}  // namespace tessera::engine
