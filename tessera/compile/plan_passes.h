// Passes over a plan, behind the lowering: steps and memory, the same values.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "tessera/compile/pipeline.h"
#include "tessera/plan/plan.h"

namespace tessera::compiler {

struct PlanPass {
  std::string_view name;
  std::string_view summary;
  std::size_t (*run)(plan::Plan& plan);  ///< how many changes it made
};

/// The table, in the order in which they run.
[[nodiscard]] std::span<const PlanPass> plan_passes();

/// Runs those that are not disabled and adds a report of each.
void run_plan_passes(plan::Plan& plan, const PipelineOptions& options, std::vector<PassReport>& reports);

}  // namespace tessera::compiler
