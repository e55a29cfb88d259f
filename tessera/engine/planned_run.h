// Runs a component by its plan: what changed since the last launch is patched, then it is launched.
#pragma once

#include <span>
#include <vector>

#include "tessera/engine/plan_entry.h"
#include "tessera/engine/streamed_run.h"

namespace tessera::engine {

/// `symbols` are the values of the entry's size symbols. Appends what is kept. `steps` empty means all.
/// `outcome` comes empty, with memory for its text.
[[nodiscard]] Result<void> run_planned(const PlanEntry& entry, PlanInstance& instance, const Needed& needed,
                                       std::span<const std::uint32_t> steps, const PlanKey& key,
                                       std::span<const std::int64_t> symbols, runtime::MemoryPool& pool,
                                       std::vector<Computed>& out, LaunchOutcome& outcome,
                                       const LaunchOptions& options);

}  // namespace tessera::engine
